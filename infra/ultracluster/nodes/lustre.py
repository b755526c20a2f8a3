"""Lustre clients: a PCS node mounts the file system at boot, an EKS node prepares for the FSx CSI driver to mount it.

Source: FSx for Lustre User Guide, "Configuring EFA clients", "Mounting automatically", "Performance tips" (2026); EKS
User Guide, "Optimize FSx for Lustre performance on nodes" (2026).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, lustre
from ultracluster.nodes.steps import Step


@dataclass(frozen=True)
class LustreMount:
    """A file system to mount at `path`. `efa` is whether the file system has EFA enabled. Names may be tokens."""

    dns_name: str
    mount_name: str
    path: str
    efa: bool


def module_option_steps(hardware: InstanceType) -> list[Step]:
    """The step that sets options of Lustre's kernel modules, before anything loads them; none where none are set."""
    options = lustre.module_options(hardware)
    return [Step("set-lustre-module-options", options)] if options else []


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


def _try_efa_client() -> list[str]:
    """Sets up the EFA client unless the image did. A failure leaves Lustre on TCP and only prints a warning."""
    return [
        f"active() {{ systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}; }}",
        "set_up() {",
        f"  cd /root && curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip &&",
        f"    python3 -m zipfile -e {_EFA_CLIENT_FOLDER}.zip . && cd {_EFA_CLIENT_FOLDER} && bash ./setup.sh",
        "}",
        "active || (set_up) || true",
        "active || echo 'lustre: EFA is not set up, so Lustre runs over TCP on this node' >&2",
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
