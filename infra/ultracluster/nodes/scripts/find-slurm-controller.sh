#!/bin/bash
# Has the metrics agent of a login node read the metrics of slurmctld, at the paths $1...: writes its addresses to the file
# of targets. The image has several versions of Slurm; a controller does not answer a command that is newer than itself.
set -euo pipefail
configuration=
for _ in $(seq 30); do
  for scontrol in /opt/aws/pcs/scheduler/slurm-*/bin/scontrol; do
    configuration=$("$scontrol" show config) && break 2
  done
  sleep 10
done
[ -n "$configuration" ] || { echo "Slurm does not answer" >&2; exit 1; }
port=$(awk '$1 == "SlurmctldPort" { split($3, range, "-"); print range[1] }' <<< "$configuration")
# SlurmctldHost[0] = NAME(ADDRESS)
mapfile -t hosts < <(awk '$1 ~ /^SlurmctldHost/ { sub(/\).*$/, "", $3); sub(/^.*\(/, "", $3); print $3 }' <<< "$configuration")
targets='' separator=''
for host in "${hosts[@]}"; do
  for path in "$@"; do
    targets+="$separator{\"targets\": [\"$host:$port\"], \"labels\": {\"__metrics_path__\": \"$path\", \"instance\": \"slurmctld$path\"}}"
    separator=,
  done
done
folder=/etc/ultracluster/metrics/targets
mkdir -p "$folder"
printf '[%s]\n' "$targets" > "$folder/slurm.new"
mv "$folder/slurm.new" "$folder/slurm.json"
