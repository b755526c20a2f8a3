#!/bin/bash
# Sets the weight of this Slurm node from the network nodes above it (EC2 instance topology), so that Slurm fills one
# network node before the next. slurmctld forgets weights when it rereads its configuration, such as at an update of the
# cluster, so a systemd timer sets it again every five minutes.
set -euo pipefail
cat > /usr/local/sbin/weigh-node <<'SCRIPT'
#!/bin/bash
# Nodes under the same network nodes get the same weight, nodes under the same upper ones weights within 1000.
# If any node has another weight, from Weight of a node group, this changes nothing.
set -euo pipefail
# the image has several versions of Slurm; slurmctld does not answer commands that are newer than itself
commands=
for found in /opt/aws/pcs/scheduler/slurm-*/bin; do
  if timeout 10 "$found/scontrol" ping > /dev/null 2>&1; then
    commands=$found
    break
  fi
done
[ -n "$commands" ] || { echo "Slurm does not answer" >&2; exit 1; }
weights=$(timeout 10 "$commands/sinfo" --all --Node --noheader --format %w)
! grep --quiet --invert-match --line-regexp '1\|1[0-9]\{6\}' <<< "$weights" || exit 0
hash_below_1000() { # text
  cksum <<< "$1" | awk '{ print $1 % 1000 }'
}
nodes=$(cat /opt/ultracluster/network-nodes)
weight=$((1000000 + $(hash_below_1000 "${nodes% *}") * 1000 + $(hash_below_1000 "$nodes")))
shown=$(timeout 10 "$commands/scontrol" --oneliner show node "$1")
[[ $shown =~ \ Weight=$weight\  ]] || timeout 10 "$commands/scontrol" update nodename="$1" weight="$weight"
SCRIPT
chmod 755 /usr/local/sbin/weigh-node

cat > /etc/systemd/system/weigh-node.service <<UNIT
[Unit]
Description=Weight of the Slurm node by instance topology
ConditionPathExists=/opt/ultracluster/network-nodes

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/weigh-node $PCS_NODE_ID
TimeoutStartSec=2min
UNIT
cat > /etc/systemd/system/weigh-node.timer <<'UNIT'
[Unit]
Description=Weight of the Slurm node by instance topology

[Timer]
OnActiveSec=10s
OnUnitInactiveSec=5min
RandomizedDelaySec=30s

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable weigh-node.timer
systemctl start weigh-node.timer
