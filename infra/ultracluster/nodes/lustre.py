"""Lustre clients: a PCS node mounts the file system at boot, an EKS node prepares for the FSx CSI driver to mount it.

Source: FSx for Lustre User Guide, "Configuring EFA clients", "Mounting automatically", "Performance tips" (2026); EKS
User Guide, "Optimize FSx for Lustre performance on nodes" (2026).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, lustre


@dataclass(frozen=True)
class LustreMount:
    """A file system to mount at `path`. `efa` is whether the file system has EFA enabled. Names may be tokens."""

    dns_name: str
    mount_name: str
    path: str
    efa: bool


def mount_lustre(mount: LustreMount, hardware: InstanceType | None) -> str:
    """Script of a PCS node: mounts a file system at every boot and tunes the client.

    `hardware` is None for a node without GPUs, which mounts over TCP and is not tuned. Where the file system and the
    node have EFA, AWS's client script sets EFA up. If its systemd unit is not active afterwards, the script fails
    and cloud-init logs it: Lustre would fall back to TCP without any message. The mount keeps access times
    (relatime) because release tasks use them.
    """
    source = f"{mount.dns_name}@tcp:/{mount.mount_name}"
    after = "network-online.target"
    lines = ["#!/bin/bash", "set -euo pipefail"]
    if hardware:
        lines += _module_options(hardware)
    if hardware and mount.efa:
        after = lustre.EFA_CLIENT_UNIT
        lines += _require_efa_client()
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
        lines += _tune_after_boot(lustre.client_parameters(hardware))
    return "\n".join([*lines, ""])


def prepare_lustre_client(hardware: InstanceType | None, *, efa: bool) -> str:
    """Script of an EKS node: installs the Lustre client for the FSx CSI driver, and tunes it.

    `hardware` is None for a node without GPUs. With `efa`, the script tries AWS's EFA client set-up, which is
    documented for Ubuntu. If that fails, Lustre uses TCP and the script says so on standard error.
    """
    lines = ["#!/bin/bash", "set -euo pipefail"]
    if hardware:
        lines += _module_options(hardware)
    lines += [
        "for attempt in $(seq 5); do",
        "  rpm -q lustre-client || dnf install -y lustre-client || sleep 10",
        "done",
        "rpm -q lustre-client",
    ]
    if hardware and efa:
        lines += _try_efa_client()
    if hardware:
        lines += _tune_every_minute(lustre.client_parameters(hardware))
    return "\n".join([*lines, ""])


_EFA_CLIENT_FOLDER = lustre.EFA_CLIENT_PACKAGE.rpartition("/")[2]


def _module_options(hardware: InstanceType) -> list[str]:
    file = "/etc/modprobe.d/lustre-tuning.conf"
    options = lustre.module_options(hardware)
    return [f"echo 'options {option}' {'>>' if number else '>'} {file}" for number, option in enumerate(options)]


def _require_efa_client() -> list[str]:
    """Sets up the EFA client unless the image did. Success is the state of its unit, not its script's exit status."""
    return [
        f"if ! systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}; then",
        "  cd /root",
        f"  curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip",
        f"  python3 -m zipfile -e {_EFA_CLIENT_FOLDER}.zip .",
        f"  (cd {_EFA_CLIENT_FOLDER} && bash ./setup.sh) || true",
        f"  systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}",
        "fi",
    ]


def _try_efa_client() -> list[str]:
    """Like `_require_efa_client`, but a failure leaves Lustre on TCP and only prints a warning."""
    return [
        f"active() {{ systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}; }}",
        "set_up() {",
        f"  cd /root && curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip &&",
        f"    python3 -m zipfile -e {_EFA_CLIENT_FOLDER}.zip . && cd {_EFA_CLIENT_FOLDER} && bash ./setup.sh",
        "}",
        "active || (set_up) || true",
        "active || echo 'lustre: EFA is not set up, so Lustre runs over TCP on this node' >&2",
    ]


def _tune_after_boot(parameters: Sequence[str]) -> list[str]:
    """A unit that sets the parameters at every boot, because `lctl set_param` does not persist."""
    if not parameters:
        return []
    return [
        *_write_unit(
            "lustre-tuning.service",
            "[Unit]",
            "After=remote-fs.target",
            "[Service]",
            "Type=oneshot",
            *(f"ExecStart=/usr/sbin/lctl set_param {parameter}" for parameter in parameters),
            "[Install]",
            "WantedBy=multi-user.target",
        ),
        "systemctl enable --now lustre-tuning.service",
    ]


def _tune_every_minute(parameters: Sequence[str]) -> list[str]:
    """A timer that sets the parameters again, because every mount starts with defaults and pods mount at any time."""
    if not parameters:
        return []
    return [
        *_write_unit(
            "lustre-tuning.service",
            "[Service]",
            "Type=oneshot",
            # the minus ignores a failure: there may be no mount yet
            *(f"ExecStart=-/usr/sbin/lctl set_param {parameter}" for parameter in parameters),
            "StandardOutput=null",
            "StandardError=null",
            "LogLevelMax=warning",
        ),
        *_write_unit(
            "lustre-tuning.timer",
            "[Timer]",
            "OnBootSec=1min",
            "OnUnitActiveSec=1min",
            "[Install]",
            "WantedBy=timers.target",
        ),
        "systemctl enable --now lustre-tuning.timer",
    ]


def _write_unit(name: str, *lines: str) -> list[str]:
    return [f"cat > /etc/systemd/system/{name} <<'UNIT'", *lines, "UNIT"]
