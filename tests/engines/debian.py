"""A Debian system: an overlay over the folder of scripts/engines.sh, with a host name and a network of its own."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ultracluster.nodes.steps import Step

_ENTER = """
set -eu
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount -t tmpfs tmpfs "$2/root/run"
mount --bind /dev "$2/root/dev"
# an address beside 127.0.0.1, for getaddrinfo of a host without one finds nothing
chroot "$2/root" /usr/sbin/ip -batch - <<<$'link set lo up\naddress add 10.0.0.10/32 dev lo'
cd "$2/root"
shift 2
# the root of the namespace, not of the process alone: no user namespaces can be made after chroot
pivot_root . mnt
umount --lazy /mnt
cd /
# without exec: as process 1, systemd-analyze writes to the kernel's log in place of stderr
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
/usr/bin/env -i PATH="$path" HOME=/root LANG=C PCS_NODE_ID=train-1 "$@" || exit $?
"""

_CLOUD_CONFIG = """
datasource_list: [NoCloud, None]
network: {config: disabled}
cloud_init_modules: [write_files]
cloud_config_modules: []
cloud_final_modules: [scripts_user]
output: {all: '| tee -a /var/log/cloud-init-output.log'}
"""

_STUB = """#!/bin/bash
echo "{name} $*" >> /stubs.log
{body}
"""

WORKING = {
    "systemctl": 'if [ "$1" = show ]; then echo loaded; fi',
    "mountpoint": "",
    "mount": "",
    "mdadm": '[ "$1" != --examine ]',
    "mkfs.xfs": "",
    "blkid": "exit 2",
    "udevadm": "",
    "lsblk": 'for n in 0 1 2 3 4 5 6 7; do echo "/dev/nvme${n}n1 Amazon EC2 NVMe Instance Storage"; done',
    "lnetctl": "echo '        status: up'",
    "lctl": "",
    "curl": "",
    "rpm": "",
    "dnf": "",
    "apt-mark": "",
    "systemd-tmpfiles": "",
    "docker": "",
}
"""Stubs of commands that need hardware, a network or a running systemd, when nothing fails."""


class Debian:
    """A system whose changes lie under `place`. Commands called like a stub are the stub."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder, self._place = folder, place
        self.upper = place / "upper"
        for name in ("upper", "work", "root"):
            (place / name).mkdir()

    def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Writes a file; `path` is absolute in the system."""
        file = self.upper / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def read(self, path: str) -> str:
        """Text of a file that was written in the system."""
        return (self.upper / path.lstrip("/")).read_text()

    def exists(self, path: str) -> bool:
        """Whether a file was written in the system."""
        return (self.upper / path.lstrip("/")).exists()

    def stub(self, commands: Mapping[str, str]) -> None:
        """Puts stubs first on the path."""
        for name, body in commands.items():
            self.write(f"/usr/local/sbin/{name}", _STUB.format(name=name, body=body), mode=0o755)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the system, with a host name, mounts and a network of its own, which has only loopback."""
        enter = [
            "unshare",
            "--uts",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            _ENTER,
            "enter",
        ]
        return subprocess.run(
            [*enter, str(self._folder), str(self._place), *command], text=True, capture_output=True, timeout=600
        )

    def cloud_init(self, user_data: str) -> str:
        """Boots with `user_data` as cloud-init does; returns cloud-init's log of warnings and errors."""
        seed = "/var/lib/cloud/seed/nocloud"
        self.write(f"{seed}/user-data", user_data)
        self.write(f"{seed}/meta-data", "instance-id: i-0123456789abcdef0\nlocal-hostname: node\n")
        self.write("/etc/cloud/cloud.cfg", _CLOUD_CONFIG)
        self.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", mode=0o755)
        stages = "cloud-init init --local && cloud-init init && cloud-init modules --mode=config"
        ran = self.run("bash", "-c", f"({stages}) >/dev/null 2>&1; cloud-init modules --mode=final 2>&1")
        return ran.stdout + ran.stderr

    def boot(self, steps: Sequence[Step]) -> None:
        """Runs steps one after the other. Raises AssertionError for one that fails."""
        for step in steps:
            self.write("/step.sh", step.script.text)
            ran = self.run("bash", "/step.sh", *step.arguments)
            assert ran.returncode == 0, (step.name, ran.stderr)

    def stubs_called(self) -> list[str]:
        """Commands with arguments that stubs were called with, in order."""
        return self.read("/stubs.log").splitlines() if self.exists("/stubs.log") else []
