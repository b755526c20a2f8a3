"""The instance store of a PCS node. On EKS, nodeadm joins the disks (see `eks.py`)."""

SCRATCH = "/scratch"
"""Mount point of the instance store on a PCS node."""


def raid0_instance_store() -> str:
    """Script that joins the NVMe instance store volumes into one RAID 0 array and mounts it at SCRATCH.

    If the image has already joined and mounted them at /opt/dlami/nvme, the script bind-mounts that folder instead.
    """
    return f"""#!/bin/bash
set -euo pipefail
mkdir -p {SCRATCH}
if mountpoint -q /opt/dlami/nvme; then
  mountpoint -q {SCRATCH} || mount --bind /opt/dlami/nvme {SCRATCH}
else
  mapfile -t disks < <(lsblk -dpno NAME,MODEL | awk '/Amazon EC2 NVMe Instance Storage/ {{print $1}}')
  device="${{disks[0]}}"
  if [ "${{#disks[@]}}" -gt 1 ]; then
    device=/dev/md/scratch
    [ -e "$device" ] || mdadm --create "$device" --run --level=0 --raid-devices="${{#disks[@]}}" "${{disks[@]}}"
  fi
  blkid "$device" || mkfs.xfs "$device"
  mountpoint -q {SCRATCH} || mount -o noatime "$device" {SCRATCH}
fi
chmod 1777 {SCRATCH}
"""
