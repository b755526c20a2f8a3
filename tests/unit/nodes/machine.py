"""A fake machine in a folder: runs boot scripts with fake commands, and their absolute paths inside the folder.

Its systemd reads the unit files that scripts write: it mounts and runs what they say, and does it again at a reboot.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.unit.nodes.systemd import SYSTEMD
from ultracluster.catalog import lustre
from ultracluster.nodes.steps import Step

EFA_CLIENT = lustre.EFA_CLIENT_PACKAGE.rpartition("/")[2]
"""Folder of AWS's EFA client, and the name of its archive without .zip."""

_ABSOLUTE = re.compile(
    r"(?<![\w./-])/(?=(?:dev|etc|fsx|home|opt|proc|root|run|scratch|sys|usr/local|usr/sbin|var|work)\b)"
)
_REAL = (
    *(
        "awk",
        "base64",
        "bash",
        "cat",
        "chmod",
        "grep",
        "mkdir",
        "mv",
        "rm",
        "sed",
        "seq",
        "sha256sum",
        "test",
        "timeout",
        "true",
    ),
)
"""Real commands that scripts may run. bash finds no other command that is not faked."""

_FAKES = {
    "sleep": "exit 0",
    "systemd-escape": 'path="${@: -1}"; path="${path#"$ROOT"/}"; echo "${path//\\//-}.mount"',
    "lnetctl": "test -e \"$ROOT/efa-active\" && echo '        status: up' || echo '        status: down'",
    "curl": f'case "$*" in *169.254*) ;; *) cp "$ROOT/{EFA_CLIENT}.zip" .;; esac',
    "mountpoint": 'grep -qxF "$2" "$ROOT/mounts"',
    "mount": """
what="${@: -2:1}" where="${@: -1}"
case "$what" in "$ROOT/dev/"*) test -e "$what" || exit 32;; esac
[ -d "$where" ] || exit 32
echo "$where" >> "$ROOT/mounts"
""",
    "umount": """grep -vxF "$1" "$ROOT/mounts" > "$ROOT/mounts.left"; mv "$ROOT/mounts.left" "$ROOT/mounts\"""",
    "mount.nfs": "exit 0",
    "apt-get": "exit 0",
    "lsblk": 'cat "$ROOT/disks"',
    "mdadm": """
case "$1" in
  --examine) grep -qxF "$2" "$ROOT/array";;
  --assemble) mkdir -p "$ROOT/dev/md" "$ROOT/dev/disk/by-label"; : > "$2"; : > "$ROOT/dev/disk/by-label/scratch";;
  --create) mkdir -p "$ROOT/dev/md"; : > "$2"; shift 5; printf '%s\\n' "$@" > "$ROOT/array";;
esac
""",
    "blkid": 'grep -qxF "$1" "$ROOT/formatted"',
    "mkfs.xfs": 'echo "$3" >> "$ROOT/formatted"; mkdir -p "$ROOT/dev/disk/by-label"; : > "$ROOT/dev/disk/by-label/$2"',
    "udevadm": "exit 0",
    "lctl": 'grep -q fsx "$ROOT/mounts"',
    "lustre_rmmod": ': > "$ROOT/proc/modules"',
    "apt-mark": "exit 0",
    "dpkg-query": 'cat "$ROOT/packages"',
    "python3": f'"{sys.executable}" "$@"',
    "rpm": 'test -e "$ROOT/lustre-client-installed"',
    "dnf": ': > "$ROOT/lustre-client-installed"',
    "systemd-tmpfiles": "exit 0",
    "configure-efa": ': > "$ROOT/efa-active"',
    "docker": """
case "$1" in
  image) grep -qxF "$3" "$ROOT/images";;
  pull) echo "$3" >> "$ROOT/images";;
  login) cat > "$ROOT/password";;
esac
""",
    "aws": "echo password",
    "chown": "exit 0",
    "uname": "echo x86_64",
    "id": "echo 990",
    "nft": "exit 0",
}
"""Fake commands, with their bodies when nothing fails. `$ROOT` is the folder of the machine."""

PACKAGES = """\
linux-aws
linux-headers-aws
linux-image-6.17.0-1005-aws
linux-base
lustre-client-modules-aws
lustre-client-utils
"""

EFA_UNIT = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={root}/bin/configure-efa
"""

DLAMI_UNIT = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={root}/bin/mount /dev/vg.01/lv_ephemeral {root}/opt/dlami/nvme
"""


class Machine:
    """A machine whose files are under `root`. `efa` is whether AWS's client package sets EFA up.

    `instance_store` is the number of its NVMe instance store volumes; with `dlami` its image joins and mounts them.
    With `apt` it has Ubuntu's package manager, else dnf; with `docker` it has Docker.
    """

    def __init__(
        self,
        root: Path,
        *,
        efa: bool = True,
        instance_store: int = 0,
        dlami: bool = False,
        apt: bool = True,
        docker: bool = True,
    ) -> None:
        self.root = root
        for folder in (
            *("bin", "dev/vg.01", "etc/dnf", "etc/modprobe.d", "etc/profile.d", "etc/systemd/system", "etc/tmpfiles.d"),
            *("opt/dlami/nvme", "proc", "root", "run", "scratch", "systemd", "usr/local/sbin"),
        ):
            (root / folder).mkdir(parents=True)
        (root / "scratch").rmdir()
        (root / "dev/null").symlink_to("/dev/null")
        for file in (
            *(
                "array",
                "dev/vg.01/lv_ephemeral",
                "etc/environment",
                "formatted",
                "log",
                "mounts",
                "proc/modules",
                "proc/mounts",
            ),
            *("systemd/active", "systemd/enabled"),
        ):
            (root / file).touch()
        self.write("packages", PACKAGES)
        self.write("etc/pam.d/sshd", "@include common-account\n")
        self.write("etc/dnf/dnf.conf", "[main]\ngpgcheck=True\n")
        volumes = [f"{root}/dev/nvme{number}n1 Amazon EC2 NVMe Instance Storage" for number in range(instance_store)]
        root_volume = f"{root}/dev/nvme{instance_store}n1 Amazon Elastic Block Store"
        for line in (*volumes, root_volume):
            Path(line.split()[0]).touch()
        self.write("disks", "".join(f"{line}\n" for line in (*volumes, root_volume)))
        with zipfile.ZipFile(root / f"{EFA_CLIENT}.zip", "w") as archive:
            # its exit status does not tell whether it worked: the script under test must look at the unit
            unit = EFA_UNIT.format(root=root)
            start = f"systemctl daemon-reload\nsystemctl start {lustre.EFA_CLIENT_UNIT}\n"
            write = f"cat > '{root}/etc/systemd/system/{lustre.EFA_CLIENT_UNIT}' <<'END'\n{unit}END\n{start}exit 1\n"
            archive.writestr(f"{EFA_CLIENT}/setup.sh", write if efa else "exit 0\n")
        if dlami:
            self.write("etc/systemd/system/dlami-nvme.service", DLAMI_UNIT.format(root=root))
        for name in _REAL:
            found = shutil.which(name)
            assert found
            (root / "bin" / name).symlink_to(found)
        self.apt, self.docker = apt, docker
        self._command("cp", f'"{shutil.which("cp")}" "$@"')
        self._command("systemctl", f'exec "{sys.executable}" -IS "$ROOT/systemctl.py" "$@"')
        self.write("systemctl.py", SYSTEMD)
        self.write("systemd/units", "{}")
        if dlami:
            self.systemctl("daemon-reload")
        self.write("log", "")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def run(self, step: Step | str, **failing: str) -> subprocess.CompletedProcess[str]:
        """Runs a step or a script. `failing` replaces bodies of fake commands, with _ for - in names."""
        text, arguments = (step.script.text, step.arguments) if isinstance(step, Step) else (step, ())
        self._fakes(failing)
        self.write("script", _ABSOLUTE.sub(f"{self.root}/", text))
        inside = [_ABSOLUTE.sub(f"{self.root}/", argument) for argument in arguments]
        return self._execute(str(self.root / "script"), *inside)

    def boot(self, steps: Sequence[Step], *, first: bool = True, **failing: str) -> list[str]:
        """Runs steps as PCS does, up to the first that fails; returns the names of those that succeeded."""
        done = []
        for step in steps:
            if first or step.frequency == "every_boot":
                if self.run(step, **failing).returncode:
                    break
                done.append(step.name)
        return done

    def reboot(self, **failing: str) -> None:
        """Reboots: nothing is mounted, /run and the log are empty; then systemd starts what is enabled."""
        for file in ("mounts", "log", "systemd/active"):
            self.write(file, "")
        shutil.rmtree(self.root / "run")
        (self.root / "run").mkdir()
        (self.root / "efa-active").unlink(missing_ok=True)
        self._fakes(failing)
        self.systemctl("daemon-reload")
        self.systemctl("boot")
        self.write("log", "")

    def systemctl(self, *arguments: str) -> int:
        """Runs the machine's systemctl; returns its exit status."""
        return self._execute(str(self.root / "bin" / "systemctl"), *arguments).returncode

    def commands(self, *names: str) -> list[str]:
        """Commands that ran, in order, those called `names` or all; paths as the machine sees them."""
        lines = [self._seen(line) for line in self.read("log").splitlines()]
        return [line for line in lines if not names or line.split()[0] in names]

    def unit(self, name: str) -> str:
        """Text of a unit file, with paths as the machine sees them."""
        return self._seen(self.read(f"etc/systemd/system/{name}"))

    @property
    def mounts(self) -> list[str]:
        return [self._seen(line) for line in self.read("mounts").splitlines()]

    @property
    def ready(self) -> bool:
        """Whether slurmd may start."""
        return (self.root / "run/ultracluster/ready").exists()

    def _seen(self, text: str) -> str:
        return text.replace(str(self.root), "")

    def _fakes(self, failing: Mapping[str, str]) -> None:
        replaced = {name.replace("_", "-"): body for name, body in failing.items()}
        for name, body in {**_FAKES, **replaced}.items():
            if (self.apt or name != "apt-mark") and (self.docker or name != "docker"):
                self._command(name, body)

    def _execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        bash = os.path.realpath(self.root / "bin" / "bash")
        return subprocess.run(
            [bash, *command],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.root,
            env={"PATH": str(self.root / "bin"), "ROOT": str(self.root), "PCS_NODE_ID": "train-1"},
            timeout=300,
        )

    def _command(self, name: str, body: str) -> None:
        file = self.root / "bin" / name
        file.unlink(missing_ok=True)  # a real command is a link, through which the write below would go
        log = "" if name in ("cp", "sleep", "systemd-escape") else f'echo "{name} $*" >> "$ROOT/log"\n'
        # it may be a link to a real command, which must not be written through
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/bash\n{log}{body}\n")
        file.chmod(0o755)


def await_end(process: str) -> None:
    """Waits until a process that was killed has ended, which it does when a core is free for it."""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        try:
            if "\nState:\tZ" in Path("/proc", process, "status").read_text():
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {process} goes on")


def syntax_errors(scripts: Sequence[str] | Mapping[str, str]) -> list[str]:
    """What `bash -n` says of scripts."""
    texts = scripts.values() if isinstance(scripts, Mapping) else scripts
    checked = (subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True) for text in texts)
    return [done.stderr for done in checked if done.returncode or done.stderr]
