"""`ultracluster validate`: reports, exit codes, imports."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_files import COMMAND_AT_THAT_TIME, FOLDER, NAMES, file_of, place, printed

ROOT = Path(__file__).parents[3]
HEAVY = {"aws_cdk", "jsii", "boto3", "botocore", "moto", "cfnlint", "rich"}
VALID = FOLDER / "minimal.yaml"


def ultracluster(*arguments, **options):
    """Runs the command in a process of its own, beside the folder `bad` of refused files."""
    for name in (Path(word).stem for word in map(str, arguments) if word.startswith("bad/")):
        file_of(name)
    command = [sys.executable, "-c", COMMAND_AT_THAT_TIME, *map(str, arguments)]
    # readline, which pytest imports, exports COLUMNS=80 to child processes, past os.environ
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, **{"cwd": place(), "env": variables, **options})


def test_a_valid_file_is_fine():
    done = ultracluster("validate", "minimal.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "minimal.yaml\n  fine\n", "")


def test_an_error_is_reported_and_exits_with_1():
    done = ultracluster("validate", "bad/lustre-efa-capacity.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        printed("lustre-efa-capacity") + "1 error, 0 warnings in 1 file\n",
        "",
    )


def test_a_report_fits_a_narrow_terminal():
    files = ["bad/arn-other-account.yaml", "bad/image-not-pinned.yaml", "bad/lustre-efa-capacity.yaml"]
    done = ultracluster("validate", *files, env={**os.environ, "COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
    reports = "".join(map(printed, ("arn-other-account", "image-not-pinned", "lustre-efa-capacity")))
    words = f"{reports} 1 error, 2 warnings in 3 files".split()
    assert done.stdout.split() == words


def test_a_warning_is_reported_and_exits_with_0():
    done = ultracluster("validate", "bad/image-not-pinned.yaml")
    assert (done.returncode, done.stdout) == (0, printed("image-not-pinned") + "0 errors, 1 warning in 1 file\n")


def test_strict_exits_with_1_for_a_warning():
    assert ultracluster("validate", "--strict", "bad/image-not-pinned.yaml").returncode == 1
    assert ultracluster("validate", "--strict", "minimal.yaml").returncode == 0


def test_a_name_stands_for_the_file_in_environments(tmp_path):
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/test.yaml").write_text(VALID.read_text())
    for command in ("validate", "quotas"):
        assert ultracluster(command, "test", cwd=tmp_path).returncode == 0
    assert ultracluster("validate", "other", cwd=tmp_path).returncode == 1


def test_several_files_are_reported_in_order():
    done = ultracluster("validate", "bad/cidr-size.yaml", "minimal.yaml", "bad/out-of-range.yaml")
    assert done.returncode == 1
    assert done.stdout == printed("cidr-size") + "minimal.yaml\n  fine\n" + printed("out-of-range") + (
        "2 errors, 0 warnings in 3 files\n"
    )


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
    assert "the folder has no environment file.  Give the path of an environment file." in done.stdout
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
    file_of("cidr-size")
    done = subprocess.run(command, cwd=place(), stdout=write_end, stderr=subprocess.PIPE, text=True)
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


def test_each_finding_has_its_line_and_column_unless_it_is_about_the_whole_file():
    done = ultracluster("validate", "bad/out-of-range.yaml", "bad/yaml-syntax.yaml", "bad/empty-file.yaml")
    lines = done.stdout.splitlines()
    assert lines[1].startswith("  error: 10:47 node_groups[0].count: 0 is out of range")
    assert any(line.startswith("  error: 12:1: a tab indents this line") for line in lines)
    assert any(line.startswith("  error: the file is empty") for line in lines)


def test_a_finding_in_the_extended_file_names_it_with_the_line(tmp_path):
    (tmp_path / "base.yaml").write_text(VALID.read_text().replace("count: 2", "count: 0"))
    (tmp_path / "env.yaml").write_text("extends: base.yaml\n")
    done = ultracluster("validate", "env.yaml", cwd=tmp_path)
    assert done.stdout.splitlines()[1].startswith("  error: base.yaml:10:47 node_groups[0].count: 0 is out of range")


def test_a_file_can_come_from_standard_input():
    text = file_of("out-of-range").read_text()
    done = ultracluster("validate", "-", input=text)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "standard input")
    assert "[out-of-range]" in done.stdout
    done = ultracluster("validate", "-", input=VALID.read_text())
    assert (done.returncode, done.stdout) == (0, "standard input\n  fine\n")
    [found] = json.loads(ultracluster("validate", "--json", "-", input=text).stdout)
    assert (found["file"], found["line"]) == ("standard input", 10)


def test_standard_input_that_is_not_text_is_a_finding():
    done = ultracluster("validate", "-", input="\xff", encoding="latin-1")
    assert done.returncode == 1
    assert "byte 1 is not UTF-8 text" in done.stdout


def test_a_folder_stands_for_its_environment_files(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: shared.yaml\nname: a\n")
    (tmp_path / "b.yml").write_text(VALID.read_text().replace("count: 2", "count: 0"))
    (tmp_path / "shared.yaml").write_text(VALID.read_text())
    (tmp_path / "users.yaml").write_text("users: []\n")
    done = ultracluster("validate", tmp_path)
    assert done.returncode == 1
    *lines, count = done.stdout.splitlines()
    assert count == "1 error, 0 warnings in 2 files"
    names = [line for line in lines if not line.startswith(" ")]
    assert names == [str(tmp_path / "a.yaml"), str(tmp_path / "b.yml")]


def test_explain_prints_the_steps_in_order_with_hash_and_time_limit(tmp_path):
    (tmp_path / "site.sh").write_text("#!/bin/bash\ntrue\n")
    text = VALID.read_text().replace("count: 2,", "count: 2, bootstrap: [{file: site.sh, timeout_seconds: 61}],")
    (tmp_path / "env.yaml").write_text(text)
    env = {**os.environ, "COLUMNS": "80"}
    done = ultracluster("validate", "--explain", "env.yaml", cwd=tmp_path, env=env)
    assert done.returncode == 0
    assert done.stdout.startswith("env.yaml\n  fine\n\n  login: 1 node of m7i.4xlarge\n    1. separate-users: ")
    assert max(map(len, done.stdout.splitlines())) <= 80
    checksum = hashlib.sha256(b"#!/bin/bash\ntrue\n").hexdigest()
    words = " ".join(done.stdout.split())
    assert f"site.sh: your script, SHA-256 {checksum[:16]}..., at most 61 s. At first boot." in words
    assert (
        words.index("mount-lustre: ", words.index("train: ")) < words.index("site.sh: ") < words.index("admit-jobs: ")
    )
    [found] = json.loads(ultracluster("validate", "--explain", "--json", "env.yaml", cwd=tmp_path).stdout)
    assert (found["file"], found["findings"]) == ("env.yaml", [])
    [script] = [step for node in found["nodes"] for step in node["steps"] if step["sha256"]]
    assert (script["name"], script["sha256"], script["timeout_seconds"]) == ("site.sh", checksum, 61)


def test_explain_tells_the_range_of_a_count(tmp_path):
    (tmp_path / "env.yaml").write_text(VALID.read_text().replace("count: 2,", "count: {min: 0, max: 10},"))
    done = ultracluster("validate", "--explain", "env.yaml", cwd=tmp_path)
    assert "\n  train: 0 to 10 nodes of p5.48xlarge\n" in done.stdout


def test_explain_of_a_refused_file_is_its_report():
    done = ultracluster("validate", "--explain", "bad/out-of-range.yaml")
    assert (done.returncode, done.stdout) == (1, printed("out-of-range"))


@pytest.mark.parametrize("name", ["bootstrap-too-long", "image-not-pinned"])
def test_a_report_with_warnings_comes_before_the_plan(name):
    assert name in NAMES
    assert ultracluster("validate", "--explain", f"bad/{name}.yaml").stdout.startswith(printed(name) + "\n  login: ")
