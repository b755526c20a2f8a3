"""What a node does at its first boot: MIME multipart user data, as AWS PCS asks for it. Pure text, no CDK."""

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, lustre

BOUNDARY = "==NODE=="

SCRATCH = "/scratch"
"""Where a node's own NVMe disks are mounted."""


@dataclass(frozen=True)
class LustreMount:
    """A file system to mount: its host name, its Lustre mount name, where it goes, and whether EFA carries it."""

    dns_name: str
    mount_name: str
    path: str
    efa: bool


def user_data(parts: Sequence[str]) -> str:
    """`parts` as one MIME multipart document. PCS takes no other form.

    A part that starts with `#cloud-config` runs before the node registers with PCS, a shell script after that and
    before slurmd starts. Source: AWS PCS User Guide, "Working with Amazon EC2 user data" (2026).
    """
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for part in parts:
        kind = "cloud-config" if part.startswith("#cloud-config") else "x-shellscript"
        lines += [f"--{BOUNDARY}", f'Content-Type: text/{kind}; charset="us-ascii"', "", part.strip(), ""]
    return "\n".join([*lines, f"--{BOUNDARY}--", ""])


def protect_slurmd() -> str:
    """Keeps Ubuntu's needrestart from restarting slurmd during an unattended upgrade, which would kill its jobs."""
    return """#cloud-config
write_files:
  - path: /etc/needrestart/conf.d/slurmd.conf
    content: |
      $nrconf{override_rc}{qr(^slurmd)} = 0;
"""


def raid0_instance_store() -> str:
    """Joins the local NVMe disks into one striped volume at SCRATCH, or links to where the image has done so."""
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


def mount_lustre(mount: LustreMount, hardware: InstanceType | None) -> str:
    """Mounts a file system at every boot, over EFA where it and the node have it, and tunes the client.

    `hardware` is None for a node without GPUs, which mounts over TCP untuned. EFA is set up with AWS's own client
    script; a node where its unit is not active ends here and says so in cloud-init's log, because Lustre would fall
    back to TCP without a word. Access times are kept (relatime): release tasks go by them.

    Source: FSx for Lustre User Guide, "Configuring EFA clients", "Mounting automatically", "Performance tips" (2026).
    """
    source = f"{mount.dns_name}@tcp:/{mount.mount_name}"
    after = "network-online.target"
    lines = ["#!/bin/bash", "set -euo pipefail"]
    if hardware:
        lines += _module_options(hardware)
    if hardware and mount.efa:
        after = lustre.EFA_CLIENT_UNIT
        lines += _efa_client()
    options = f"relatime,flock,_netdev,x-systemd.requires={after},x-systemd.after={after}"
    lines += [
        f"mkdir -p {mount.path}",
        f"entry='{source} {mount.path} lustre {options} 0 0'",
        'grep -qxF "$entry" /etc/fstab || echo "$entry" >> /etc/fstab',
        "systemctl daemon-reload",
        "for attempt in $(seq 30); do",
        f"  mountpoint -q {mount.path} || mount {mount.path} || sleep 10",
        "done",
        f"mountpoint -q {mount.path}",
    ]
    if hardware and mount.efa:
        lines += ["lnetctl net show --net efa | grep -q 'status: up'"]
    if hardware:
        lines += _tuning(hardware)
    return "\n".join([*lines, ""])


def _efa_client() -> list[str]:
    """Sets the client up, unless the image has done so. Whether it worked is told by its unit, not by its script."""
    name = lustre.EFA_CLIENT_PACKAGE.rpartition("/")[2]
    return [
        f"if ! systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}; then",
        "  cd /root",
        f"  curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip",
        f"  python3 -m zipfile -e {name}.zip .",
        f"  (cd {name} && bash ./setup.sh) || true",
        f"  systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}",
        "fi",
    ]


def _module_options(hardware: InstanceType) -> list[str]:
    file = "/etc/modprobe.d/lustre-tuning.conf"
    options = lustre.module_options(hardware)
    return [f"echo 'options {option}' {'>>' if number else '>'} {file}" for number, option in enumerate(options)]


def _tuning(hardware: InstanceType) -> list[str]:
    """`lctl set_param` does not last, so a unit repeats it at every boot."""
    parameters = lustre.client_parameters(hardware)
    if not parameters:
        return []
    return [
        "cat > /etc/systemd/system/lustre-tuning.service <<'UNIT'",
        "[Unit]",
        "After=remote-fs.target",
        "[Service]",
        "Type=oneshot",
        *(f"ExecStart=/usr/sbin/lctl set_param {parameter}" for parameter in parameters),
        "[Install]",
        "WantedBy=multi-user.target",
        "UNIT",
        "systemctl enable --now lustre-tuning.service",
    ]
