#!/bin/bash
# The last step before jobs: slurmd of a compute node starts after it only (fence-slurmd.sh), at each boot.
# Checks the node at the level $1: fast, or full at the first boot, which takes minutes. $2 is for a node that fails: with
# replace the step fails and PCS terminates the node; with drain the node joins and is drained. No arguments: no checks.
# Fast checks that fail are repeated for $3 seconds, because an NVLink fabric takes time to come up. $4 seconds are the limit
# of all.
set -euo pipefail
mkdir -p /run/ultracluster /var/lib/ultracluster
rm -f /run/ultracluster/not-accepted
level=${1:-none} on_failure=${2:-drain} repeat=${3:-0} limit=${4:-0} accepted=/var/lib/ultracluster/accepted
[ "$level" = none ] || [ ! -e "$accepted" ] || level=fast
check=/opt/ultracluster/health/check-node
if [ "$level" != none ]; then
  end=$((SECONDS + repeat))
  until "$check" fast > /dev/null || [ $((SECONDS + 15)) -ge "$end" ]; do
    sleep 15
  done
  if reason=$(timeout --kill-after=30 $((limit - SECONDS)) "$check" "$level"); then
    : > "$accepted"
  else
    reason=${reason:-health: reboot: limit: the checks of level $level fail or do not end}
    echo "$reason" >&2
    [ "$on_failure" = drain ] || exit 1
    printf '%s\n' "$reason" > /run/ultracluster/not-accepted
  fi
fi
: > /run/ultracluster/ready
