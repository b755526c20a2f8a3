#!/bin/bash
# Mounts Lustre file systems, now and at each boot after the systemd unit $1. Each further argument is one of them: what
# to mount, where, and the options. With $2 = efa, fails unless Lustre has an EFA interface: it would fall back to TCP
# without any message.
set -euo pipefail
after=$1
network=$2
shift 2

for each in "$@"; do
  read -r source path options <<< "$each"
  unit=$(systemd-escape --path --suffix=mount "$path")
  mkdir -p "$path"
  cat > "/etc/systemd/system/$unit" <<UNIT
[Unit]
Description=FSx for Lustre file system
Requires=$after
After=$after

[Mount]
What=$source
Where=$path
Type=lustre
Options=$options
TimeoutSec=5min

[Install]
WantedBy=remote-fs.target
UNIT
  systemctl daemon-reload
  systemctl enable "$unit"
  for _ in $(seq 30); do
    if systemctl start "$unit"; then
      break
    fi
    sleep 10
  done
  mountpoint -q "$path"
done
if [ "$network" = efa ]; then
  lnetctl net show --net efa | grep 'status: up' >/dev/null
fi
