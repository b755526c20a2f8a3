"""The step that sets up containers: what it installs and refuses, and Slurm jobs in real containers.

Real ones need Enroot's packages and Pyxis for the Slurm of the Debian folder, which nobody publishes: set
ULTRACLUSTER_CONTAINER_FILES to a folder with the files of docs/containers.md and an image busybox.sqsh.
"""

import hashlib
import os
import shutil
import struct
from pathlib import Path

import pytest

from tests.engines.slurm import HELD, start
from ultracluster.catalog.containers import ENROOT_TESTED
from ultracluster.nodes.pcs import job_settings
from ultracluster.nodes.steps import Step, script

VERSION = "26.05"
SLURM = f"/opt/aws/pcs/scheduler/slurm-{VERSION}"
PLUGIN = f"{SLURM}/lib/slurm/spank_pyxis.so"
FRAGMENT = f"/etc/aws/pcs/scheduler/slurm-{VERSION}/plugstack.conf.d/pyxis.conf"
FOLDER = "/var/lib/enroot"
AS_NOBODY = "setpriv --reuid=nobody --regid=nogroup --clear-groups"

AWS = """
while [ $# -gt 1 ]; do
  case $1 in --bucket) bucket=$2 ;; --key) key=$2 ;; esac
  shift
done
cp "/s3/$bucket/$key" "$1"
"""
"""A stand-in of `aws s3api get-object`: buckets are folders of /s3."""

APT = """
printf '#!/bin/bash\\n[ "$1" = version ] && echo 4.1.2\\n' > /usr/local/bin/enroot
chmod 755 /usr/local/bin/enroot
"""
"""A stand-in of apt-get, which installs an Enroot."""


def plugin(version: tuple[int, int, int]) -> bytes:
    """A library with the one symbol that tells for which Slurm a plugin was compiled."""
    names, number = b"\0plugin_version\0", version[0] << 16 | version[1] << 8 | version[2]
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x11, 0, 3, 0x5000, 4)
    data = names + symbols + struct.pack("<I", number)
    at = [64, 64 + len(names), 64 + len(names) + len(symbols)]
    sections = (
        bytes(64)
        + struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at[1], len(symbols), 2, 0, 8, 24)
        + struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at[0], len(names), 0, 0, 1, 0)
        + struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0x5000, at[2], 4, 0, 0, 1, 0)
    )
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(data), *[0] * 7)
    return head[:58] + struct.pack("<HHH", 64, 4, 0) + data + sections


def put(debian, path, content):
    file = debian.upper / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def publish(debian, files):
    """Puts files and their SHA256SUMS into a bucket; returns the SHA-256 of the latter."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
    for name, content in {**files, "SHA256SUMS": sums}.items():
        put(debian, f"/s3/software/containers/{name}", content)
    return hashlib.sha256(sums).hexdigest()


FILES = {
    f"amd64/slurm-{VERSION}/spank_pyxis.so": plugin((26, 5, 4)),
    "amd64/enroot_4.1.2-1_amd64.deb": b"package",
    "arm64/enroot_4.1.2-1_arm64.deb": b"another package",
}


@pytest.fixture
def node(debian):
    """A node with Slurm where PCS has it, and stand-ins of what installs packages."""
    debian.write(f"{SLURM}/bin/scontrol", "")
    debian.write("/etc/enroot/enroot.conf", "ENROOT_DATA_PATH /tmp/data\nENROOT_SQUASH_OPTIONS -noD\n")
    debian.stub({"aws": AWS, "apt-get": APT, "dpkg": "echo amd64"})
    return debian


def set_up(debian, *arguments, minimum="3.4.0", kind="cpu"):
    debian.write("/step.sh", script("set-up-containers").text)
    return debian.run("bash", "/step.sh", VERSION, minimum, FOLDER, kind, *arguments)


def from_bucket(checksum):
    return ("s3://software/containers", checksum)


def test_what_the_image_lacks_comes_from_the_bucket(node):
    ran = set_up(node, *from_bucket(publish(node, FILES)))
    assert ran.returncode == 0, ran.stderr
    keys = [call.split("--key ")[1].split()[0] for call in node.stubs_called() if call.startswith("aws")]
    below = ("SHA256SUMS", f"amd64/slurm-{VERSION}/spank_pyxis.so", "SHA256SUMS", "amd64/enroot_4.1.2-1_amd64.deb")
    assert keys == [f"containers/{name}" for name in below]
    assert (node.upper / PLUGIN[1:]).read_bytes() == FILES[f"amd64/slurm-{VERSION}/spank_pyxis.so"]
    assert node.read(FRAGMENT) == f"required {PLUGIN}\n"
    assert node.read("/etc/default/slurmd").splitlines()[-1].startswith(f"PATH={SLURM}/bin:")


def test_folders_are_those_of_the_user_on_the_local_disks_whatever_the_image_sets(node):
    set_up(node, *from_bucket(publish(node, FILES)))
    assert node.read("/etc/enroot/enroot.conf") == "#ENROOT_DATA_PATH /tmp/data\nENROOT_SQUASH_OPTIONS -noD\n"
    assert node.read("/etc/enroot/enroot.conf.d/ultracluster.conf").splitlines() == [
        f"ENROOT_CACHE_PATH {FOLDER}/$(id -u)/cache",
        f"ENROOT_DATA_PATH {FOLDER}/$(id -u)/data",
        f"ENROOT_TEMP_PATH {FOLDER}/$(id -u)/tmp",
        "ENROOT_RUNTIME_PATH /run/enroot/$(id -u)",
    ]


def test_an_image_that_holds_both_is_used_as_it_is(node):
    put(node, "/usr/lib/slurm-own/spank_pyxis.so", plugin((26, 5, 1)))
    node.write(FRAGMENT, "required /usr/lib/slurm-own/spank_pyxis.so\n")
    node.stub({"enroot": "echo 4.0.1", "nvidia-container-cli": ""})
    ran = set_up(node, minimum="4.0.0", kind="gpus")
    assert ran.returncode == 0, ran.stderr
    assert not [call for call in node.stubs_called() if call.startswith(("aws", "apt-get"))]
    assert node.read(FRAGMENT) == "required /usr/lib/slurm-own/spank_pyxis.so\n"
    assert node.read("/etc/enroot/enroot.conf.d/ultracluster.conf").splitlines()[-2:] == [
        "NVIDIA_VISIBLE_DEVICES all",
        "NVIDIA_DRIVER_CAPABILITIES all",
    ]


def test_a_login_node_gets_the_options_and_keeps_its_own_folders(node):
    ran = set_up(node, *from_bucket(publish(node, FILES)), kind="login")
    assert ran.returncode == 0, ran.stderr
    assert node.exists(FRAGMENT)
    assert not node.exists("/opt/ultracluster/prolog.d/30-container-folders")
    assert not node.exists("/etc/enroot/enroot.conf.d/ultracluster.conf")


@pytest.mark.parametrize(
    ("files", "kind", "reason"),
    [
        ({f"amd64/slurm-{VERSION}/spank_pyxis.so": plugin((25, 11, 6))}, "cpu", "is for Slurm 25.11, not 26.05"),
        ({"amd64/slurm-25.11/spank_pyxis.so": plugin((25, 11, 6))}, "cpu", "has no file"),
        ({f"amd64/slurm-{VERSION}/spank_pyxis.so": b"#!/bin/bash\n"}, "cpu", "not a library"),
        (FILES, "gpus", "nvidia-container-cli is missing"),
    ],
)
def test_what_cannot_run_containers_fails_the_node(node, files, kind, reason):
    ran = set_up(node, *from_bucket(publish(node, files)), kind=kind)
    assert ran.returncode == 1
    assert reason in ran.stderr


@pytest.mark.parametrize("name", ["SHA256SUMS", "amd64/enroot_4.1.2-1_amd64.deb"])
def test_a_file_that_is_not_the_pinned_one_is_not_installed(node, name):
    checksum = publish(node, FILES)
    put(node, f"/s3/software/containers/{name}", b"changed")
    ran = set_up(node, *from_bucket(checksum))
    assert (ran.returncode, "apt-get" in " ".join(node.stubs_called())) == (1, False)
    assert "another one" in ran.stderr or "is not the file of SHA256SUMS" in ran.stderr


def test_ultraservers_get_no_enroot_without_imex_channels(node):
    put(node, PLUGIN, plugin((26, 5, 4)))
    node.stub({"enroot": "echo 3.5.0"})
    ran = set_up(node, minimum="4.0.0")
    assert ran.returncode == 1
    assert "Enroot is missing or older than 4.0.0, and control_plane.containers names no files" in ran.stderr


def test_a_user_has_folders_that_nobody_else_enters_and_loses_them_with_the_last_job(debian, node):
    set_up(node, *from_bucket(publish(node, FILES)))
    debian.boot([Step("write-job-programs")])
    beginning = start(debian, {**job_settings({}, [], VERSION), "PrologFlags": "Alloc"})
    debian.write(
        "/run.sh",
        beginning
        + f"""
chmod 777 /tmp
mine={FOLDER}/$(id -u nobody)
{AS_NOBODY} sbatch -w gpu-1 --output=/tmp/%j.log --wrap "umask 077; mkdir $mine/data/pyxis_1.0 $mine/data/named; \\
  echo > $mine/cache/layer; mkdir $mine/data/link; ln -s /etc $mine/tmp/etc; {HELD}" > /dev/null
{AS_NOBODY} sbatch -w gpu-1 --output=/tmp/%j.log --wrap "{HELD.replace("/end", "/last")}" > /dev/null
for _ in $(seq 40); do [ -e $mine/cache/layer ] && break; sleep 0.2; done
stat -c '%n %a %U' $mine $mine/data /run/enroot/*
touch /end
for _ in $(seq 60); do [ -e $mine/data/pyxis_1.0 ] || break; sleep 0.3; done
echo between $(ls $mine/data $mine/tmp)
touch /last
for _ in $(seq 60); do [ -e $mine/data ] || break; sleep 0.3; done; sleep 1
echo after $(ls $mine $mine/cache) $(ls {FOLDER}/.removed 2>&1 | wc -l) $(sinfo -h -o %T)
""",
    )
    ran = debian.run("bash", "/run.sh")
    user = f"{FOLDER}/65534"
    assert ran.stdout.splitlines() == [
        f"{user} 711 root",
        f"{user}/data 700 nobody",
        "/run/enroot/65534 700 nobody",
        f"between {user}/data: link named {user}/tmp: etc",  # noqa: S108
        f"after {user}: cache {user}/cache: layer 1 idle",
    ], ran.stderr


REAL = f"""
for package in /files/amd64/{{curl,lib}}*.deb; do dpkg-deb --extract $package /; done
mkdir -p {SLURM}/lib/slurm; ln -s /usr/bin {SLURM}/bin
python3 -m http.server 8000 --bind 127.0.0.1 --directory /files > /dev/null 2>&1 &
sleep 1
bash /step.sh {VERSION} 4.0.0 {FOLDER} cpu http://127.0.0.1:8000 $1 > /step.log 2>&1 || {{ tail -5 /step.log; exit 1; }}
echo "include $(dirname {FRAGMENT})/*.conf" > /etc/slurm/plugstack.conf
echo Enroot $(enroot version)
. /start.sh
chmod 777 /tmp
in_container="srun --container-image=/busybox.sqsh --no-container-mount-home --container-writable"
cat > /job.sh <<JOB
#!/bin/bash
export FROM_HOST=host
$in_container sh -c 'echo "in \\$(cat /name) as \\$(id -u) with \\$FROM_HOST on \\$SLURMD_NODENAME"'
$in_container --container-name=kept sh -c 'echo written > /usr/first; echo first'
srun --container-name=kept --no-container-mount-home --container-writable cat /usr/first
ls {FOLDER}/65534/data
JOB
chmod 755 /job.sh
{AS_NOBODY} sbatch -N1 -w gpu-1 --output=/tmp/job.log --wait /job.sh > /dev/null
cat /tmp/job.log
for _ in $(seq 60); do [ -e {FOLDER}/65534/data ] || break; sleep 0.3; done
echo left $(ls {FOLDER}/65534) $(sinfo -h -o %T)
"""


def test_jobs_run_in_real_containers_and_leave_nothing(debian):
    folder = os.environ.get("ULTRACLUSTER_CONTAINER_FILES")
    if not folder:
        pytest.skip("ULTRACLUSTER_CONTAINER_FILES names no folder with Enroot, Pyxis and an image")
    shutil.copytree(Path(folder, "files"), debian.upper / "files")
    shutil.copy(Path(folder, "busybox.sqsh"), debian.upper)
    debian.boot([Step("write-job-programs")])
    debian.write("/start.sh", start(debian, {**job_settings({}, [], VERSION), "PrologFlags": "Alloc"}))
    debian.write("/step.sh", script("set-up-containers").text)
    debian.write("/run.sh", REAL)
    checksum = hashlib.sha256(Path(folder, "files", "SHA256SUMS").read_bytes()).hexdigest()
    ran = debian.run("bash", "/run.sh", checksum)
    assert ran.stdout.splitlines() == [
        f"Enroot {ENROOT_TESTED}",
        "in busybox as 65534 with host on gpu-1",
        "first",
        "written",
        "pyxis_kept",
        "left cache idle",
    ], (ran.stderr, debian.read("/step.log")[-1500:])
