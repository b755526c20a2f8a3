#!/bin/bash
# Drains the Slurm node $1 with the reason $2; runs on a login node. Jobs on the node run to their end.
# $3 is the start of the alert, in UTC. An alert that started before the node booted is about an earlier instance with that
# name, unless the node booted an hour ago or more: no rule keeps firing that long after its condition has ended.
# At most a tenth of the running nodes are drained, at least one: a fault of many nodes needs a person.
set -euo pipefail
node=$1 reason="auto-repair: $2" since=${3%Z}
export LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=standard
report() { # outcome, detail
  printf '{"node": "%s", "outcome": "%s", "detail": "%s", "reason": "%s"}\n' "$node" "$1" "$2" "$reason"
  logger --tag ultracluster-drain "$1: $node: $2: $reason" 2> /dev/null || true
}

# the image has several versions of Slurm; slurmctld does not answer commands that are newer than itself
scontrol=
for found in /opt/aws/pcs/scheduler/slurm-*/bin/scontrol; do
  if "$found" ping > /dev/null 2>&1; then
    scontrol=$found
    break
  fi
done
# alerts of several nodes arrive at the same time: a lock makes each count the nodes drained before it
exec 9> /run/ultracluster-drain.lock
flock -w 60 9 || { report failed "another drain does not end"; exit 1; }
if [ -z "$scontrol" ] || ! nodes=$("$scontrol" --all --oneliner show nodes); then
  report failed "Slurm does not answer"
  exit 1
fi
# state and boot time of the node; running nodes of partitions, and those of them that this script drained
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
    report failed "no such node"
    exit 1
    ;;
  *DRAIN*)
    report unchanged "already $state"
    exit
    ;;
  *POWERED_DOWN* | *POWERING_*)
    report skipped "no instance: $state"
    exit
    ;;
esac
if [[ ! $booted =~ ^[0-9]{4}- ]]; then
  report skipped "never booted"
  exit
fi
if [[ $booted > $since ]] && (($(date +%s) - $(date --date "$booted" +%s) < 3600)); then
  report skipped "booted since: at $booted"
  exit
fi
limit=$((total > 10 ? total / 10 : 1))
if [ "$drained" -ge "$limit" ]; then
  report refused "$drained of $total running nodes are drained already, the limit is $limit"
  exit
fi
"$scontrol" update nodename="$node" state=drain reason="$reason"
report drained "its jobs run to their end"
