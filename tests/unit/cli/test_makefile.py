"""What `make` says about a folder and a file that are not where they were."""

import shutil
import subprocess

import pytest

from tests.synthesis import ROOT


@pytest.fixture
def folder(tmp_path):
    """A checkout with a .venv, in a folder with a space in its name."""
    found = tmp_path / "a checkout"
    (found / ".venv" / "bin").mkdir(parents=True)
    (found / "environments").mkdir()
    shutil.copy(ROOT / "Makefile", found)
    shutil.copytree(ROOT / "scripts", found / "scripts")
    return found


def starts_with(folder, text):
    """Whether `make` says that the folder was moved, and whether .venv is still there."""
    (folder / ".venv" / "bin" / "ultracluster").write_text(text)
    done = subprocess.run(["make", "help"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return "was moved or copied" in done.stdout, (folder / ".venv").exists()


def test_packages_stay_where_they_were_installed(folder):
    """A path with a space does not fit into a line that begins with #!, so pip writes a shell command."""
    own = f"{folder}/.venv/bin/python"
    assert starts_with(folder, f"""#!/bin/sh\n'''exec' "{own}" "$0" "$@"\n' '''\n""") == (False, True)


def test_packages_are_not_touched_before_their_installation(folder):
    done = subprocess.run(["make", "help"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert (done.returncode, "was moved" in done.stdout) == (0, False)


@pytest.mark.parametrize("exists", [True, False], ids=["copied", "moved"])
def test_packages_of_another_folder_are_installed_again(folder, tmp_path, exists):
    old = tmp_path / "old"
    if exists:
        old.mkdir()
    assert starts_with(folder, f"#!{old}/python\n") == (True, False)


def test_a_checkout_without_spaces_keeps_its_packages(tmp_path):
    folder = tmp_path / "checkout"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    assert starts_with(folder, f"#!{folder}/.venv/bin/python\n") == (False, True)


def test_an_environment_whose_file_is_gone_is_stopped_by_force(folder):
    done = subprocess.run(["scripts/destroy.sh", "exp"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "environments/exp.yaml does not exist" in done.stderr
    assert "ultracluster local down --force" in done.stderr


def test_a_destruction_takes_the_account_of_its_own_file(folder):
    """Not that of the last `make up`, which is in .localaws/env before."""
    (folder / "environments" / "exp.yaml").touch()
    (folder / ".localaws").mkdir()
    (folder / ".localaws" / "env").write_text("export CDK_DEFAULT_ACCOUNT=of-another-file\n")
    programs = {
        ".venv/bin/ultracluster": 'echo "export CDK_DEFAULT_ACCOUNT=of-$3" > .localaws/env',
        ".venv/bin/cdk": 'echo "$CDK_DEFAULT_ACCOUNT: cdk $1" >> calls',
        ".venv/bin/python": 'echo "$CDK_DEFAULT_ACCOUNT: $1" >> calls',
    }
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    path = f"{folder}/.venv/bin:/usr/bin:/bin"
    subprocess.run(["scripts/destroy.sh", "exp"], cwd=folder, check=True, timeout=600, env={"PATH": path})
    account = "of-environments/exp.yaml"
    calls = [f"{account}: cdk synth", f"{account}: scripts/unprotect.py", f"{account}: cdk destroy"]
    assert (folder / "calls").read_text().splitlines() == calls
