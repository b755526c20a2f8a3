"""`ultracluster validate --effects`: what is compared with what, reports and exit codes."""

import json
import shutil
import subprocess

import pytest

from tests.bad_files import FOLDER
from tests.unit.cli.test_validate_command import ultracluster

MINIMAL = (FOLDER / "minimal.yaml").read_text()


def git(folder, *arguments):
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def files(tmp_path):
    """A file, and one with another image, one with another zone."""
    (tmp_path / "old.yaml").write_text(MINIMAL)
    (tmp_path / "new.yaml").write_text(MINIMAL.replace("ami-0123456789abcdef0", "ami-0123456789abcdef1"))
    (tmp_path / "elsewhere.yaml").write_text(MINIMAL.replace("us-east-2b", "us-east-2c"))
    return tmp_path


def effects(folder, *arguments, **options):
    return ultracluster("validate", "--effects", *arguments, cwd=folder, **options)


def test_two_files(files):
    done = effects(files, "old.yaml", "new.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "new.yaml",
        "  node_groups[train].image: ami-0123456789abcdef0 -> ami-0123456789abcdef1",
        "    replaces nodes when the jobs of each end; nodes: train",
        "    jobs: run to their end; sessions on login nodes end",
    ]


def test_files_alike(files):
    done = effects(files, "old.yaml", "old.yaml")
    assert (done.returncode, done.stdout) == (0, "old.yaml\n  no change\n")


def test_a_change_that_would_replace_data_exits_with_1_and_says_what_to_do(files):
    done = effects(files, "old.yaml", "elsewhere.yaml")
    assert done.returncode == 1
    assert "refused; subnets, file systems and the cluster would be replaced" in done.stdout
    assert "instead: deploy a second environment" in done.stdout


def test_json(files):
    done = effects(files, "--json", "old.yaml", "new.yaml")
    assert done.returncode == 0
    assert json.loads(done.stdout) == [
        {
            "path": "node_groups[train].image",
            "old": "ami-0123456789abcdef0",
            "new": "ami-0123456789abcdef1",
            "effect": "nodes",
            "what": "replaces nodes when the jobs of each end",
            "nodes": ["train"],
            "jobs_lost": False,
            "jobs": "run to their end; sessions on login nodes end",
            "first": "",
        }
    ]


def test_the_old_file_from_standard_input(files):
    done = effects(files, "-", "new.yaml", input=MINIMAL)
    assert (done.returncode, "node_groups[train].image" in done.stdout) == (0, True)


def test_a_file_since_its_last_commit(files):
    git(files, "init", "-q")
    git(files, "add", "old.yaml")
    git(files, "commit", "-q", "-m", "first")
    shutil.copy(files / "new.yaml", files / "old.yaml")
    done = effects(files, "old.yaml")
    assert (done.returncode, "node_groups[train].image: ami-0123456789abcdef0 ->" in done.stdout) == (0, True)
    done = effects(files, "HEAD:old.yaml", "new.yaml")
    assert (done.returncode, "node_groups[train].image: ami-0123456789abcdef0 ->" in done.stdout) == (0, True)


def test_the_commit_has_the_files_that_the_file_extends(files):
    (files / "base.yaml").write_text(MINIMAL.replace("name: test\n", ""))
    (files / "own.yaml").write_text("extends: base.yaml\nname: test\n")
    git(files, "init", "-q")
    git(files, "add", "base.yaml", "own.yaml")
    git(files, "commit", "-q", "-m", "first")
    (files / "base.yaml").write_text((files / "new.yaml").read_text().replace("name: test\n", ""))
    done = effects(files, "own.yaml")
    assert (done.returncode, "node_groups[train].image: ami-0123456789abcdef0 ->" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old.yaml"], "git has no version HEAD of old.yaml"),
        (["v1:old.yaml", "new.yaml"], "git has no version v1 of old.yaml"),
        (["old.yaml", "new.yaml", "elsewhere.yaml"], "--effects takes two files"),
        (["gone.yaml", "new.yaml"], "the old file cannot be read"),
        (["HEAD:", "new.yaml"], "HEAD: is not REVISION:FILE"),
        ([":old.yaml", "new.yaml"], ":old.yaml is not REVISION:FILE"),
        (["--explain", "old.yaml", "new.yaml"], "--effects and --explain are two reports"),
    ],
)
def test_nothing_to_compare_with_is_wrong_usage(files, arguments, words):
    done = effects(files, *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_errors_of_the_new_file_are_reported_first(files):
    (files / "bad.yaml").write_text(MINIMAL.replace("us-east-2b", "us-east-1b"))
    done = effects(files, "old.yaml", "bad.yaml")
    assert (done.returncode, "[zone-outside-region]" in done.stdout) == (1, True)


def test_the_old_file_may_break_rules_that_are_newer_than_its_deployment(files):
    (files / "ended.yaml").write_text(MINIMAL.replace('"26.05"', '"24.11"'))
    done = effects(files, "ended.yaml", "old.yaml")
    assert done.returncode == 0
    assert "control_plane.slurm_version: 24.11 -> 26.05" in done.stdout
