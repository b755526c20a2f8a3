#!/bin/bash
# Mounts the NVMe instance store at $1: as a folder of the array that the image makes, or as a RAID 0 array of its own.
# The mount is a systemd unit, so that it comes back after a reboot, which keeps the data.
set -euo pipefail
path=$1
label=scratch
device=/dev/disk/by-label/$label
unit=$(systemd-escape --path --suffix=mount "$path")

write_unit() { # What, Type, Options, and lines for [Unit]
  cat > "/etc/systemd/system/$unit" <<UNIT
[Unit]
Description=Instance store
$4

[Mount]
What=$1
Where=$path
Type=$2
Options=$3

[Install]
WantedBy=multi-user.target
UNIT
}

make_array() {
  mapfile -t disks < <(lsblk -dpno NAME,MODEL | awk '/Amazon EC2 NVMe Instance Storage/ {print $1}')
  if [ "${#disks[@]}" -eq 0 ]; then
    echo "no NVMe instance store volume found" >&2
    exit 1
  fi
  volume=${disks[0]}
  if [ "${#disks[@]}" -gt 1 ]; then
    volume=/dev/md/$label
    if mdadm --examine "${disks[0]}" >/dev/null 2>&1; then
      [ -e "$volume" ] || mdadm --assemble "$volume" "${disks[@]}"
    else
      mdadm --create "$volume" --run --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
    fi
  fi
  blkid "$volume" || mkfs.xfs -L "$label" "$volume"
  udevadm settle
}

# on a DLAMI this unit joins and mounts the volumes at each boot; starting it waits until it has finished
if [ "$(systemctl show --property=LoadState --value dlami-nvme.service)" = loaded ]; then
  systemctl start dlami-nvme.service
fi
if mountpoint -q /opt/dlami/nvme; then
  # without default dependencies: they would order the mount before basic.target, and so before the service
  write_unit /opt/dlami/nvme none bind "DefaultDependencies=no
Requires=dlami-nvme.service
After=dlami-nvme.service
Conflicts=umount.target
Before=umount.target"
else
  [ -e "$device" ] || make_array
  write_unit "$device" xfs noatime,nofail ""
fi
mkdir -p "$path"
systemctl daemon-reload
systemctl enable "$unit"
systemctl start "$unit"
mountpoint -q "$path"
chmod 1777 "$path"
