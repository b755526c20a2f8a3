"""Boot steps of one's own in settings: forms of a script, and what its path is relative to."""

import os
from pathlib import Path

import pytest

from tests.bad_files import FOLDER
from ultracluster.config.bootstrap import Script
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load, survey, validate
from ultracluster.config.named_files import NamedFile
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.problems import InvalidSettings

SITE = "#!/bin/bash\necho site\n"
MINIMAL = (FOLDER / "minimal.yaml").read_text()
IMAGE = "image: ami-0123456789abcdef0"


def group(**settings) -> NodeGroup:
    return NodeGroup(name="train", instance_type="p5.48xlarge", count=2, purchase={"type": "on_demand"}, **settings)


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def with_scripts(*paths: str) -> str:
    return MINIMAL.replace(IMAGE, f"{IMAGE}, bootstrap: [{', '.join(paths)}]")


def test_a_path_is_a_script_with_the_defaults(tmp_path):
    write(tmp_path, "scripts/site.sh", SITE)
    file = write(tmp_path, "env.yaml", with_scripts("scripts/site.sh", "{file: ./scripts/site.sh}"))
    first, second = load(file).node_groups[0].boot_scripts
    assert (first.source, second.source) == ("scripts/site.sh", "./scripts/site.sh")
    assert (first.timeout_seconds, first.on_failure) == (second.timeout_seconds, second.on_failure) == (600, "stop")
    assert first.checksum == second.checksum
    assert first.content == SITE.encode()


def test_several_login_nodes_may_get_their_homes_from_a_boot_script(tmp_path):
    write(tmp_path, "homes.sh", "#!/bin/bash\nmountpoint /home\n")
    login = "control_plane:\n  login: {count: 2, image: ami-0123456789abcdef0"
    text = MINIMAL.replace("control_plane:", f"{login}}}")
    (problem,) = survey(write(tmp_path, "none.yaml", text)).errors
    assert (problem.code, problem.path) == ("login-nodes-without-homes", "control_plane.login.count")
    text = MINIMAL.replace("control_plane:", f"{login}, bootstrap: [homes.sh]}}")
    assert load(write(tmp_path, "env.yaml", text)).control_plane.login.count == 2


def test_a_path_is_relative_to_the_file_wherever_the_command_runs(tmp_path, monkeypatch):
    write(tmp_path, "scripts/site.sh", SITE)
    write(tmp_path, "env.yaml", with_scripts("scripts/site.sh"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load("../env.yaml").node_groups[0].boot_scripts[0].content == SITE.encode()


def test_a_path_in_a_shared_file_is_relative_to_that_file(tmp_path):
    write(tmp_path, "shared/scripts/site.sh", SITE)
    write(tmp_path, "shared/base.yaml", with_scripts("scripts/site.sh"))
    file = write(tmp_path, "env.yaml", "extends: shared/base.yaml\nname: other\n")
    environment = load(file)
    assert environment.name == "other"
    assert environment.node_groups[0].boot_scripts[0].content == SITE.encode()


def test_a_problem_of_a_script_in_a_shared_file_is_at_its_line_there(tmp_path):
    write(tmp_path, "shared/base.yaml", with_scripts("scripts/site.sh"))
    [found] = validate(write(tmp_path, "env.yaml", "extends: shared/base.yaml\n")).errors
    assert (found.code, found.path) == ("bootstrap-unreadable", "node_groups[0].bootstrap[0]")
    assert found.file.endswith("shared/base.yaml")
    assert found.line == 10


def test_a_link_inside_the_folder_is_followed(tmp_path):
    write(tmp_path, "scripts/site.sh", SITE)
    (tmp_path / "site.sh").symlink_to("scripts/site.sh")
    assert validate(write(tmp_path, "env.yaml", with_scripts("site.sh"))).errors == ()


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "site.sh")
    [found] = validate(write(tmp_path, "env.yaml", with_scripts("site.sh"))).errors
    assert (found.code, found.message) == ("bootstrap-unreadable", "site.sh: it is a pipe or a device")


def test_a_program_is_refused(tmp_path):
    write(tmp_path, "site.sh", "#!/bin/bash\n\0\0")
    [found] = validate(write(tmp_path, "env.yaml", with_scripts("site.sh"))).errors
    assert found.message == "site.sh: it is a program, not a script"


def test_in_python_a_path_may_be_anywhere_and_problems_raise(tmp_path):
    file = write(tmp_path, "site.sh", SITE)
    assert group(bootstrap=[str(file)]).boot_scripts[0].content == SITE.encode()
    assert group(bootstrap=[Script(file=str(file), timeout_seconds=5)]).boot_scripts[0].timeout_seconds == 5
    with pytest.raises(InvalidSettings, match="bootstrap-unreadable"):
        group(bootstrap=[str(tmp_path / "missing.sh")])


def test_settings_as_json_can_be_read_back(tmp_path):
    write(tmp_path, "scripts/site.sh", SITE)
    environment = load(write(tmp_path, "env.yaml", with_scripts("scripts/site.sh")))
    again = Environment.model_validate(environment.model_dump(mode="json", exclude_unset=True))
    assert again.node_groups[0].boot_scripts[0].content == SITE.encode()


def test_names_of_scripts_are_plain():
    assert Script.model_construct(file=NamedFile("x/c d\n$(e).sh")).name == "c-d---e-.sh"


def test_our_security_groups_leave_room_for_three():
    groups = [f"sg-{i:08}" for i in range(4)]
    assert group(security_groups=groups[:3]).security_groups == tuple(groups[:3])
    with pytest.raises(InvalidSettings, match="security-groups-too-many"):
        group(security_groups=groups)
