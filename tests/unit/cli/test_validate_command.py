"""`ultracluster validate`: reports, exit codes, imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_files import FOLDER, report_of

ROOT = Path(__file__).parents[3]
HEAVY = {"aws_cdk", "jsii", "boto3", "botocore", "moto", "cfnlint", "rich"}
VALID = FOLDER / "minimal.yaml"


def ultracluster(*arguments, **options):
    """Runs the command in a process of its own."""
    command = [sys.executable, "-c", "from ultracluster.cli import main; main()", *map(str, arguments)]
    # readline, which pytest imports, exports COLUMNS=80 to child processes, past os.environ
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, **{"cwd": FOLDER, "env": variables, **options})


def test_a_valid_file_is_fine():
    done = ultracluster("validate", "minimal.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "minimal.yaml\n  fine\n", "")


def test_an_error_is_reported_and_exits_with_1():
    done = ultracluster("validate", "bad/lustre-efa-capacity.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (1, report_of("lustre-efa-capacity"), "")


def test_a_report_fits_a_narrow_terminal():
    files = ["bad/arn-other-account.yaml", "bad/image-not-pinned.yaml", "bad/lustre-efa-capacity.yaml"]
    done = ultracluster("validate", *files, env={**os.environ, "COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
    words = "".join(map(report_of, ("arn-other-account", "image-not-pinned", "lustre-efa-capacity"))).split()
    assert done.stdout.split() == words


def test_a_warning_is_reported_and_exits_with_0():
    done = ultracluster("validate", "bad/image-not-pinned.yaml")
    assert (done.returncode, done.stdout) == (0, report_of("image-not-pinned"))


def test_several_files_are_reported_in_order():
    done = ultracluster("validate", "bad/cidr-size.yaml", "minimal.yaml", "bad/out-of-range.yaml")
    assert done.returncode == 1
    assert done.stdout == report_of("cidr-size") + "minimal.yaml\n  fine\n" + report_of("out-of-range")


def test_json_is_a_list_of_findings():
    done = ultracluster("validate", "--json", "bad/out-of-range.yaml", "minimal.yaml")
    assert done.returncode == 1
    assert json.loads(done.stdout) == [
        {
            "code": "out-of-range",
            "path": "node_groups[0].count",
            "message": "0 is out of range; allowed: at least 1",
            "hint": "set count: 1",
            "severity": "error",
            "line": 10,
            "column": 47,
            "file": "bad/out-of-range.yaml",
        }
    ]


def test_json_of_a_valid_file_is_an_empty_list():
    assert json.loads(ultracluster("validate", "--json", "minimal.yaml").stdout) == []


def test_a_missing_file_is_a_finding(tmp_path):
    done = ultracluster("validate", "nowhere.yaml", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "the file cannot be read: no such file or directory.  Check the path." in done.stdout
    assert "the file cannot be read: is a directory.  Check the path." in done.stdout
    assert done.stdout.count("[file-unreadable]") == 2


@pytest.mark.parametrize("arguments", [["validate"], ["validate", "--jsno", "x"], ["valdiate"], []])
def test_wrong_usage_exits_with_2(arguments):
    done = ultracluster(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "--help"]])
def test_help_exits_with_0(arguments):
    assert ultracluster(*arguments).returncode == 0


def test_a_closed_pipe_is_not_an_error():
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-c", "from ultracluster.cli import main; main()", "validate", "bad/cidr-size.yaml"]
    done = subprocess.run(command, cwd=FOLDER, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert done.stderr == ""
    assert done.returncode == 1


def test_names_that_the_terminal_cannot_encode_are_escaped():
    name = os.fsdecode(b"caf\xe9.yaml")
    done = ultracluster("validate", name, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("caf\\udce9.yaml\n")


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    file = tmp_path / "red.yaml"
    file.write_text(VALID.read_text("utf-8").replace("us-east-2b", '"\\e[31mred"'), "utf-8")
    assert "\x1b" not in ultracluster("validate", file).stdout


def test_validate_imports_neither_the_cdk_nor_boto3():
    program = (
        "import sys; sys.argv[1:] = ['validate', 'minimal.yaml']; import atexit; from ultracluster.cli import main; "
    )
    program += "atexit.register(lambda: print(*sys.modules)); main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=FOLDER, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("minimal.yaml\n  fine\n")
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "pydantic" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("file", sorted([*ROOT.glob("environments/*.yaml"), *ROOT.glob("examples/*.yaml")]), ids=str)
def test_shipped_files_have_no_errors(file):
    from ultracluster.config.loader import validate
    from ultracluster.config.report import report

    reading = validate(file)
    assert reading.errors == (), report(reading)
