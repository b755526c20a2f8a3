#!/bin/bash
# Records the network nodes above this instance (EC2 instance topology), and writes order-nodes, which sorts the nodes of
# a job by them.
# PCS configures no topology plugin for these nodes, and no features of single nodes.
set -euo pipefail
metadata=http://169.254.169.254/latest
token=$(curl -fsS --retry 5 -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 300" "$metadata/api/token")
read_metadata() {
  curl -fsS --retry 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/meta-data/$1"
}
id=$(read_metadata instance-id)
region=$(read_metadata placement/region)
mkdir -p /opt/ultracluster
cat > /opt/ultracluster/order-nodes <<'SCRIPT'
#!/bin/bash
# Prints the nodes of the current job, each $1 times (1 by default), with nodes under the same network nodes next to each
# other: a file for SLURM_HOSTFILE and `srun --distribution=arbitrary`. Nodes without a known topology come last.
set -euo pipefail
unset SLURM_HOSTFILE SLURM_DISTRIBUTION
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --overlap \
  sh -c 'echo "$(cat /opt/ultracluster/network-nodes 2> /dev/null || echo \~) $SLURMD_NODENAME"' |
  LC_ALL=C sort | awk -v times="${1:-1}" '{for (i = 0; i < times; i++) print $NF}'
SCRIPT
chmod 755 /opt/ultracluster/order-nodes
for attempt in 1 2 3 4 5 6; do
  # from the top layer down, so that sorting brings neighbours together
  nodes=$(aws ec2 describe-instance-topology --region "$region" --instance-ids "$id" --cli-connect-timeout 5 \
    --query 'Instances[0].NetworkNodes' --output text) || exit 1
  if [ -n "$nodes" ] && [ "$nodes" != None ]; then
    echo "${nodes//$'\t'/ }" > /opt/ultracluster/network-nodes
    exit 0
  fi
  [ "$attempt" = 6 ] || sleep 10
done
echo "EC2 does not say where $id is in the network" >&2
exit 1
