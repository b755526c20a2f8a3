"""Files that extend another one: what is merged, which file a finding is in, and files among their siblings."""

import json
from pathlib import Path

import pytest
import yaml

from tests.bad_files import FOLDER
from ultracluster.config.loader import load, survey, validate
from ultracluster.config.report import report_json
from ultracluster.config.siblings import UnknownEnvironment, environment_file

WHOLE = yaml.safe_load((FOLDER / "minimal.yaml").read_text("utf-8"))


def write(file: Path, content: object) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), "utf-8")
    return file


def extend(folder: Path, own: object, base: object) -> Path:
    write(folder / "shared" / "base.yaml", base)
    return write(folder / "test.yaml", {"extends": "shared/base.yaml", **own})


def test_a_file_with_everything_in_the_base_is_the_base(tmp_path):
    assert load(extend(tmp_path, {}, WHOLE)) == load(FOLDER / "minimal.yaml")


def test_mappings_are_merged_and_lists_replaced(tmp_path):
    group = {**WHOLE["node_groups"][0], "count": 4}
    own = {"storage": {"lustre": {"capacity_gib": 4800}}, "node_groups": [group], "tags": {"cost": "a"}}
    found = load(extend(tmp_path, own, {**WHOLE, "tags": {"team": "b"}}))
    assert (found.storage.lustre.capacity_gib, found.storage.lustre.throughput_mbps_per_tib) == (4800, 125)
    assert [group.max_count for group in found.node_groups] == [4]
    assert found.tags == {"cost": "a", "team": "b"}


def test_null_removes_a_key_of_the_base(tmp_path):
    assert load(extend(tmp_path, {"storage": {"lustre": None}}, WHOLE)).storage.lustre is None


def test_findings_are_in_the_file_that_sets_the_value(tmp_path):
    base = {**WHOLE, "storage": {"lustre": {"capacity_gib": 1000, "throughput_mbps_per_tib": 125}}}
    file = extend(tmp_path, {"network": {"create": {"cidr": "10.0.0.0/8"}}, "colour": "red"}, base)
    reading = validate(file)
    assert [(found.code, Path(found.file).name) for found in reading.findings] == [
        ("cidr-size", ""),
        ("unknown-key", ""),
        ("lustre-capacity", "base.yaml"),
    ]
    assert [Path(each["file"]).name for each in json.loads(report_json([reading]))] == ["test.yaml"] * 2 + ["base.yaml"]


def test_a_value_of_the_file_that_hides_a_mistake_of_the_base_is_fine(tmp_path):
    base = {**WHOLE, "storage": {"lustre": {"capacity_gib": 1000, "throughput_mbps_per_tib": 125}}}
    assert validate(extend(tmp_path, {"storage": {"lustre": {"capacity_gib": 1200}}}, base)).findings == ()


def test_a_missing_key_is_named_where_its_section_is(tmp_path):
    base = {key: value for key, value in WHOLE.items() if key != "region"} | {"control_plane": {"type": "pcs"}}
    found = validate(extend(tmp_path, {}, base)).findings
    named = [("region", ""), ("control_plane.slurm_version", "base.yaml"), ("control_plane.queues", "base.yaml")]
    assert [(each.path, Path(each.file).name) for each in found] == named


def test_null_removes_an_inherited_key_that_the_model_does_not_know(tmp_path):
    assert validate(extend(tmp_path, {"colour": None}, {**WHOLE, "colour": "red"})).findings == ()


@pytest.mark.parametrize(
    ("own", "base", "hint"),
    [
        ({}, {"colour": "red"}, "remove colour, or set colour: null in test.yaml"),
        (
            {"network": {"existing": None, "create": {"colour": 1}}},
            {},
            "remove colour",
        ),
        (
            {"protect": True},
            {"retain": False},
            "remove retain, or set protect: false, or set retain: null in test.yaml",
        ),
        (
            {"network": {"create": {}}},
            {
                "network": {
                    "existing": {
                        "vpc_id": "vpc-0123456789abcdef0",
                        "node_subnet_id": "subnet-0123456789abcdef0",
                        "control_plane_subnet_ids": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
                    }
                }
            },
            "remove create or existing, or set network.existing: null in test.yaml",
        ),
    ],
)
def test_hints_name_the_null_that_removes_an_inherited_key(tmp_path, own, base, hint):
    [found] = validate(extend(tmp_path, own, {**WHOLE, **base})).errors
    assert found.hint == hint


def test_keys_of_a_switched_control_plane_are_one_finding_with_what_removes_them(tmp_path):
    eks = yaml.safe_load((FOLDER / "minimal-eks.yaml").read_text("utf-8"))
    own = {"control_plane": eks["control_plane"], "node_groups": eks["node_groups"]}
    [found] = validate(extend(tmp_path, own, WHOLE)).findings
    assert (found.code, Path(found.file).name) == ("unknown-key", "base.yaml")
    assert "set control_plane.slurm_version: null and control_plane.queues: null in test.yaml" in found.hint
    nulls = {**eks["control_plane"], "slurm_version": None, "queues": None}
    assert validate(extend(tmp_path, {**own, "control_plane": nulls}, WHOLE)).errors == ()


@pytest.mark.parametrize("key", ["extend", "Extends", "include", "base", "inherits"])
def test_a_misspelt_extends_is_the_only_finding(tmp_path, key):
    [found] = validate(write(tmp_path / "test.yaml", {key: "shared/base.yaml", "name": "test"})).findings
    assert (found.code, found.path, found.hint) == ("unknown-key", key, "did you mean extends?")


@pytest.mark.parametrize(
    ("base", "code", "file"),
    [
        ("region: [", "yaml-syntax", "base.yaml"),
        ("", "empty-file", "base.yaml"),
        ("- a\n", "extends-unreadable", ""),
        ("extends: third.yaml\n", "extends-twice", "base.yaml"),
    ],
)
def test_a_base_that_cannot_be_used_is_the_only_finding(tmp_path, base, code, file):
    path = extend(tmp_path, {}, {})
    (tmp_path / "shared" / "base.yaml").write_text(base)
    (found,) = validate(path).findings
    assert (found.code, Path(found.file).name) == (code, file)


@pytest.mark.parametrize("named", [5, True, ["a.yaml"], {"file": "a.yaml"}])
def test_extends_names_one_file(tmp_path, named):
    (found,) = validate(write(tmp_path / "test.yaml", {"extends": named, **WHOLE})).findings
    assert (found.code, found.path) == ("wrong-type", "extends")


def test_a_file_cannot_extend_itself(tmp_path):
    (found,) = validate(write(tmp_path / "test.yaml", {"extends": "test.yaml", **WHOLE})).findings
    assert found.code == "extends-twice"


def test_files_of_one_name_are_warned_of_and_still_read(tmp_path):
    folder = tmp_path / "environments"
    write(folder / "test-2.yaml", {**WHOLE, "name": "test-2"})
    (folder / "not-text.yaml").write_bytes(b"\xff")
    assert survey(write(folder / "test.yaml", WHOLE)).warnings == ()
    (folder / "exp.yml").write_text("schema_version: 1\nname: 'test'  # a copy\n")
    reading = survey(folder / "test.yaml")
    (found,) = reading.warnings
    assert (found.code, "exp.yml" in found.message) == ("environment-named-twice", True)
    assert reading.environment is not None


def test_an_unknown_environment_is_answered_with_those_that_there_are(tmp_path):
    for name in ("prod", "staging"):
        write(tmp_path / f"{name}.yaml", WHOLE)
    assert environment_file(tmp_path, "prod") == tmp_path / "prod.yaml"
    with pytest.raises(UnknownEnvironment) as caught:
        environment_file(tmp_path, "pord")
    file = tmp_path / "pord.yaml"
    assert str(caught.value) == f"{file} does not exist. Did you mean prod? Environments: prod, staging"
