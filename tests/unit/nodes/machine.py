"""A fake machine in a folder: runs a boot script with fake commands, and its absolute paths inside the folder."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ultracluster.catalog import lustre

EFA_CLIENT = lustre.EFA_CLIENT_PACKAGE.rpartition("/")[2]
"""Folder of AWS's EFA client, and the name of its archive without .zip."""

_ABSOLUTE = re.compile(r"(?<![\w./-])/(?=(?:dev|etc|fsx|opt|root|scratch|sys)\b)")
_REAL = ("awk", "bash", "cat", "chmod", "grep", "mkdir", "seq")
"""Real commands that scripts may run. bash finds no other command that is not faked."""

_EFA_UNIT = f"""
case "$*" in
  "is-active --quiet {lustre.EFA_CLIENT_UNIT}") test -e "$ROOT/efa-active";;
  is-active*) exit 4;;
esac
"""

_FAKES = {
    "sleep": "exit 0",
    "systemctl": _EFA_UNIT,
    "lnetctl": "test -e \"$ROOT/efa-active\" && echo '        status: up' || echo '        status: down'",
    "curl": f'cp "$ROOT/{EFA_CLIENT}.zip" .',
    "mountpoint": 'grep -qxF "$2" "$ROOT/mounts"',
    "mount": """
target="${@: -1}"
if [ "$#" -eq 1 ]; then grep -q " $target lustre " "$ROOT/etc/fstab" || exit 32; fi
echo "$target" >> "$ROOT/mounts"
""",
    "lsblk": 'cat "$ROOT/disks"',
    "mdadm": 'mkdir -p "$ROOT/dev/md"; : > "$2"',
    "blkid": 'grep -qxF "$1" "$ROOT/formatted"',
    "mkfs.xfs": 'echo "$1" >> "$ROOT/formatted"',
    "rpm": 'test -e "$ROOT/lustre-client-installed"',
    "dnf": ': > "$ROOT/lustre-client-installed"',
    "systemd-tmpfiles": "exit 0",
}
"""Fake commands, with their bodies when nothing fails. `$ROOT` is the folder of the machine."""


class Machine:
    """A machine whose files are under `root`. `efa` is whether AWS's client script sets EFA up.

    `instance_store` is the number of its NVMe instance store volumes.
    """

    def __init__(self, root: Path, *, efa: bool = True, instance_store: int = 0) -> None:
        self.root = root
        for folder in ("bin", "dev", "etc/modprobe.d", "etc/systemd/system", "etc/tmpfiles.d", "root"):
            (root / folder).mkdir(parents=True)
        for file in ("etc/fstab", "formatted", "log", "mounts"):
            (root / file).touch()
        volumes = [f"{root}/dev/nvme{number}n1 Amazon EC2 NVMe Instance Storage" for number in range(instance_store)]
        root_volume = f"{root}/dev/nvme{instance_store}n1 Amazon Elastic Block Store"
        self.write("disks", "".join(f"{line}\n" for line in (*volumes, root_volume)))
        with zipfile.ZipFile(root / f"{EFA_CLIENT}.zip", "w") as archive:
            # its exit status does not tell whether it worked: the script under test must look at the unit
            setup = ': > "$ROOT/efa-active"; exit 1\n' if efa else "exit 0\n"
            archive.writestr(f"{EFA_CLIENT}/setup.sh", setup)
        for name in _REAL:
            found = shutil.which(name)
            assert found
            (root / "bin" / name).symlink_to(found)
        self._command("python3", f'"{sys.executable}" "$@"')
        self._command("cp", f'"{shutil.which("cp")}" "$@"')

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def run(self, script: str, **failing: str) -> subprocess.CompletedProcess[str]:
        """Runs a script. `failing` replaces bodies of fake commands, with _ for - in names."""
        replaced = {name.replace("_", "-"): body for name, body in failing.items()}
        for name, body in {**_FAKES, **replaced}.items():
            self._command(name, body)
        self.write("script", _ABSOLUTE.sub(f"{self.root}/", script))
        environment = {"PATH": str(self.root / "bin"), "ROOT": str(self.root)}
        bash = os.path.realpath(self.root / "bin" / "bash")
        return subprocess.run(
            [bash, str(self.root / "script")],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.root,
            env=environment,
            timeout=20,
        )

    def restart(self) -> None:
        """Stops and starts the machine: nothing is mounted, and the log of commands is empty."""
        self.write("mounts", "")
        self.write("log", "")

    def commands(self, *names: str) -> list[str]:
        """Commands that ran, in order, those called `names` or all; paths as the machine sees them."""
        lines = [line.replace(str(self.root), "") for line in self.read("log").splitlines()]
        return [line for line in lines if not names or line.split()[0] in names]

    @property
    def mounts(self) -> list[str]:
        return [line.replace(str(self.root), "") for line in self.read("mounts").splitlines()]

    @property
    def fstab(self) -> list[str]:
        return [line.replace(str(self.root), "") for line in self.read("etc/fstab").splitlines()]

    def _command(self, name: str, body: str) -> None:
        file = self.root / "bin" / name
        log = "" if name in ("cp", "sleep") else f'echo "{name} $*" >> "$ROOT/log"\n'
        file.write_text(f"#!/bin/bash\n{log}{body}\n")
        file.chmod(0o755)


def syntax_errors(scripts: Sequence[str] | Mapping[str, str]) -> list[str]:
    """What `bash -n` says of scripts."""
    texts = scripts.values() if isinstance(scripts, Mapping) else scripts
    checked = (subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True) for text in texts)
    return [done.stderr for done in checked if done.returncode or done.stderr]
