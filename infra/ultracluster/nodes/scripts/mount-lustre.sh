#!/bin/bash
# Mounts the Lustre file system $1 at $2, now and at each boot after the systemd unit $3.
# With $4 = efa, fails unless Lustre has an EFA interface: it would fall back to TCP without any message.
set -euo pipefail
source=$1
path=$2
after=$3
network=${4:-tcp}
unit=$(systemd-escape --path --suffix=mount "$path")

mkdir -p "$path"
# relatime keeps access times, which release tasks use
cat > "/etc/systemd/system/$unit" <<UNIT
[Unit]
Description=FSx for Lustre file system
Requires=$after
After=$after

[Mount]
What=$source
Where=$path
Type=lustre
Options=relatime,flock,_netdev
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
if [ "$network" = efa ]; then
  lnetctl net show --net efa | grep 'status: up' >/dev/null
fi
