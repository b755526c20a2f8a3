#!/bin/bash
# Enables the service of NVIDIA IMEX, and writes a part of the prolog that starts an IMEX domain (NVLink between instances)
# for each exclusive job: IMEX needs the addresses of the job's nodes.
set -euo pipefail
# an image without the service is a fault that check-node reports: a failed boot step would terminate node after node
systemctl enable nvidia-imex.service || echo "this image has no nvidia-imex.service" >&2
mkdir -p /opt/ultracluster/prolog.d
cat > /opt/ultracluster/prolog.d/20-imex <<'SCRIPT'
#!/bin/bash
# Restarts NVIDIA IMEX with the addresses of the job's nodes, and waits until its domain is up, for less than a minute, the
# time limit of a part of the prolog. For exclusive jobs only: a restart would end the NVLink connections of other jobs.
# It asks slurmctld for the addresses, which only slurmctld knows, once a job and node: Slurm advises against such calls in
# prologs of large clusters, and only nodes of UltraServers make it.
# It fails if IMEX of this node is not ready, which drains the node and requeues the job. It does not fail if only other
# nodes are not ready: the prolog fails there.
set -uo pipefail
# Slurm 26.05 says in SLURM_JOB_EXCLUSIVE what a job has; earlier versions know only the other variable
if [ -n "${SLURM_JOB_EXCLUSIVE:-}" ]; then
  [[ $SLURM_JOB_EXCLUSIVE =~ ^(NODE|TOPO)$ ]] || exit 0
else
  [[ ${SLURM_JOB_OVERSUBSCRIBE:-} =~ ^(NO|TOPO)$ ]] || exit 0
fi
configuration=/etc/nvidia-imex/nodes_config.cfg
channels=/dev/nvidia-caps-imex-channels
seconds=${IMEX_SECONDS:-25}

fail() {
  echo "imex: $*"
  exit 1
}

addresses() { # nodes: the IPv4 address of each, in the same order on every node of the job
  local name
  timeout 10 scontrol --all --oneliner show node "$1" | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p' | while read -r name; do
    getent ahostsv4 "$name" | awk '{print $1; exit}'
  done
}

all=$(addresses "$SLURM_JOB_NODELIST")
own=$(addresses "$SLURMD_NODENAME")
wanted=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)
found=$(grep -c . <<< "$all")
[ "$found" = "$wanted" ] && [ -n "$own" ] || fail "found the addresses of $found of $wanted nodes"

if [ ! -e "$channels/channel0" ]; then
  major=$(awk '$2 == "nvidia-caps-imex-channels" {print $1}' /proc/devices)
  [ -n "$major" ] || fail "the NVIDIA driver has no IMEX channels"
  mkdir -p "$channels" && mknod -m 666 "$channels/channel0" c "$major" 0 || fail "cannot make $channels/channel0"
fi

# the file must not change while the service runs: IMEX then refuses other nodes until all nodes have restarted it
timeout 10 systemctl stop nvidia-imex.service
pkill -KILL -x nvidia-imex
mkdir -p "${configuration%/*}"
printf '%s\n' "$all" > "$configuration"
timeout 15 systemctl start nvidia-imex.service || fail "nvidia-imex.service does not start"

end=$((SECONDS + seconds))
while :; do
  state=$(timeout 5 nvidia-imex-ctl -N 2>&1)
  ! grep -q "Domain State: UP" <<< "$state" || exit 0
  [ "$SECONDS" -lt "$end" ] || break
  sleep 1
done
# Node #0   - 172.31.48.81    - READY                - Version: 570.172
awk -v own="$own" '$1 == "Node" && $4 == own && $6 == "READY" {ready = 1} END {exit !ready}' <<< "$state" ||
  fail "this node is not ready after $seconds s: $state"
echo "imex: the domain is not up after $seconds s, because of other nodes: $state"
SCRIPT
chmod 755 /opt/ultracluster/prolog.d/20-imex
