#!/bin/bash
# Drains the Slurm node $1 with the reason $2, on a login node: its jobs run to their end, and it gets no further ones.
# $3 is when the alert began, in UTC. An alert from before the node's boot is about an earlier instance of that name, unless
# it still fires an hour after the boot: no rule keeps an alert for so long once its condition has ended.
# It drains no more than a tenth of the running nodes, and at least one: a fault of many nodes needs a person.
set -euo pipefail
node=$1 reason="auto-repair: $2" since=${3%Z}
export LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=standard
said() { # outcome, detail
  printf '{"node": "%s", "outcome": "%s", "detail": "%s", "reason": "%s"}\n' "$node" "$1" "$2" "$reason"
  logger --tag ultracluster-drain "$1: $node: $2: $reason" 2> /dev/null || true
}

# the image has several versions of Slurm; a controller does not answer a command that is newer than itself
scontrol=
for found in /opt/aws/pcs/scheduler/slurm-*/bin/scontrol; do
  if "$found" ping > /dev/null 2>&1; then
    scontrol=$found
    break
  fi
done
# alerts of several nodes arrive at the same time: each counts what those before it drained
exec 9> /run/ultracluster-drain.lock
flock -w 60 9 || { said failed "another drain does not end"; exit 1; }
if [ -z "$scontrol" ] || ! nodes=$("$scontrol" --all --oneliner show nodes); then
  said failed "Slurm does not answer"
  exit 1
fi
# state and boot of the node, number of running nodes that take jobs, and of those among them that this script drained
read -r state booted total drained < <(awk -v name="$node" '
  function field(key) {
    return match($0, " " key "=[^ ]+") ? substr($0, RSTART + length(key) + 2, RLENGTH - length(key) - 2) : "-"
  }
  $1 == "NodeName=" name { state = field("State"); booted = field("BootTime") }
  field("Partitions") != "-" && field("State") !~ /POWERED_DOWN|POWERING_/ {
    total++
    drained += field("State") ~ /DRAIN/ && / Reason=auto-repair: /
  }
  END { print (state ? state : "-"), (booted ? booted : "-"), total + 0, drained + 0 }
' <<< "$nodes")
case $state in
  -)
    said failed "no such node"
    exit 1
    ;;
  *DRAIN*)
    said unchanged "already $state"
    exit
    ;;
  *POWERED_DOWN* | *POWERING_*)
    said skipped "no instance: $state"
    exit
    ;;
esac
if [[ ! $booted =~ ^[0-9]{4}- ]]; then
  said skipped "never booted"
  exit
fi
if [[ $booted > $since ]] && (($(date +%s) - $(date --date "$booted" +%s) < 3600)); then
  said skipped "booted since: at $booted"
  exit
fi
limit=$((total > 10 ? total / 10 : 1))
if [ "$drained" -ge "$limit" ]; then
  said refused "$drained of $total running nodes are drained already, the limit is $limit"
  exit
fi
"$scontrol" update nodename="$node" state=drain reason="$reason"
said drained "its jobs run to their end"
