#!/bin/bash
# The last step before jobs: slurmd of a compute node starts only after it (see fence-slurmd.sh). /run is empty after a reboot.
# It checks the node first, at the level $1: fast, or at the first boot full, which takes minutes. If the node fails, with
# $2 replace so does the step, and PCS terminates the node; with drain it joins, and is drained. Without arguments it
# checks nothing. What fails is checked again for two minutes: an NVLink fabric takes time to come up.
set -euo pipefail
mkdir -p /run/ultracluster /var/lib/ultracluster
rm -f /run/ultracluster/not-accepted
level=${1:-none} on_failure=${2:-drain} accepted=/var/lib/ultracluster/accepted
[ "$level" = none ] || [ ! -e "$accepted" ] || level=fast
check=/opt/ultracluster/health/check-node
if [ "$level" != none ]; then
  end=$((SECONDS + 120))
  until "$check" fast > /dev/null || [ "$SECONDS" -ge "$end" ]; do
    sleep 15
  done
  if reason=$(timeout --kill-after=60 1200 "$check" "$level"); then
    : > "$accepted"
  else
    reason=${reason:-health: reboot: limit: the checks of level $level fail or do not end}
    echo "$reason" >&2
    [ "$on_failure" = drain ] || exit 1
    printf '%s\n' "$reason" > /run/ultracluster/not-accepted
  fi
fi
: > /run/ultracluster/ready
