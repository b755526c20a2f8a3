#!/bin/bash
# Gives this Slurm node a weight that follows from the network nodes above it, so that Slurm fills one before the next.
# Slurm forgets it when it reads its configuration again, as at a change of the cluster: systemd looks every five minutes.
set -euo pipefail
cat > /usr/local/sbin/weigh-node <<'SCRIPT'
#!/bin/bash
# Nodes under the same network nodes have the same weight; those that share the upper ones have weights side by side.
# Where a node group has a weight of its own, no node gets another.
set -euo pipefail
# the image has several versions of Slurm; a controller does not answer a command that is newer than itself
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
number() { # of a text, below 1000
  cksum <<< "$1" | awk '{ print $1 % 1000 }'
}
nodes=$(cat /opt/ultracluster/network-nodes)
weight=$((1000000 + $(number "${nodes% *}") * 1000 + $(number "$nodes")))
shown=$(timeout 10 "$commands/scontrol" --oneliner show node "$1")
[[ $shown =~ \ Weight=$weight\  ]] || timeout 10 "$commands/scontrol" update nodename="$1" weight="$weight"
SCRIPT
chmod 755 /usr/local/sbin/weigh-node

cat > /etc/systemd/system/weigh-node.service <<UNIT
[Unit]
Description=Weight of the Slurm node by its place in the network
ConditionPathExists=/opt/ultracluster/network-nodes

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/weigh-node $PCS_NODE_ID
TimeoutStartSec=2min
UNIT
cat > /etc/systemd/system/weigh-node.timer <<'UNIT'
[Unit]
Description=Weight of the Slurm node by its place in the network

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
