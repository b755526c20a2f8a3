#!/bin/bash
# Lets the metrics agent of a login node scrape slurmctld at the paths $1...: a systemd timer writes the controller's
# addresses to the agent's file of targets every five minutes, because an update of the cluster may change them.
set -euo pipefail
cat > /usr/local/sbin/find-slurm-controller <<'SCRIPT'
#!/bin/bash
# Writes the addresses of slurmctld with each of the paths $1... to the file of targets, if they have changed.
set -euo pipefail
# the image has several versions of Slurm; slurmctld does not answer commands that are newer than itself
configuration=
for _ in $(seq 20); do
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
[ "$(cat "$folder/slurm.json" 2> /dev/null)" != "[$targets]" ] || exit 0
printf '[%s]\n' "$targets" > "$folder/slurm.new"
mv "$folder/slurm.new" "$folder/slurm.json"
SCRIPT
chmod 755 /usr/local/sbin/find-slurm-controller

cat > /etc/systemd/system/find-slurm-controller.service <<UNIT
[Unit]
Description=Addresses of slurmctld for the metrics agent

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/find-slurm-controller $*
TimeoutStartSec=5min
LogLevelMax=warning
UNIT
cat > /etc/systemd/system/find-slurm-controller.timer <<'UNIT'
[Unit]
Description=Addresses of slurmctld for the metrics agent

[Timer]
OnActiveSec=10s
OnUnitInactiveSec=5min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable find-slurm-controller.timer
systemctl start find-slurm-controller.timer
