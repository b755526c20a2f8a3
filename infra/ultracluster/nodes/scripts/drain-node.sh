#!/bin/bash
# Drains the Slurm node $1 with the reason $2, on a login node: its jobs run to their end, and it gets no further ones.
# It drains no more than a tenth of the cluster, and at least one node: a fault of many nodes needs a person.
set -euo pipefail
node=$1 reason="auto-repair: $2"
said() { # outcome, detail
  printf '{"node": "%s", "outcome": "%s", "detail": "%s", "reason": "%s"}\n' "$node" "$1" "$2" "$reason"
  logger --tag ultracluster-drain "$1: $node: $2: $reason" 2> /dev/null || true
}

# the image has several versions of Slurm; a controller does not answer a command that is newer than itself
bin=
for scontrol in /opt/aws/pcs/scheduler/slurm-*/bin/scontrol; do
  if "$scontrol" ping > /dev/null 2>&1; then
    bin=${scontrol%/scontrol}
    break
  fi
done
if [ -z "$bin" ]; then
  said failed "Slurm does not answer"
  exit 1
fi
if ! state=$("$bin/sinfo" --noheader --nodes="$node" --format=%T) || [ -z "$state" ]; then
  said failed "no such node"
  exit 1
fi
case $state in
  *drain*)
    said unchanged "already $(head -n 1 <<< "$state")"
    exit
    ;;
esac
# alerts of several nodes arrive at the same time: each counts what those before it drained
exec 9> /run/ultracluster-drain.lock
flock -w 60 9 || { said failed "another drain does not end"; exit 1; }
# one line for each node and queue
total=$("$bin/sinfo" --noheader --Node --format=%N | sort -u | wc -l)
drained=$("$bin/sinfo" --noheader --Node --format='%N %E' | awk '$2 == "auto-repair:" {print $1}' | sort -u | wc -l)
limit=$((total > 10 ? total / 10 : 1))
if [ "$drained" -ge "$limit" ]; then
  said refused "$drained of $total nodes are drained already, the limit is $limit"
  exit
fi
"$bin/scontrol" update nodename="$node" state=drain reason="$reason"
said drained "$("$bin/sinfo" --noheader --nodes="$node" --format=%T | head -n 1)"
