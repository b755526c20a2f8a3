"""The committed JSON Schema is current, accepts the shipped files, and describes every key."""

import json
from pathlib import Path

import jsonschema
import pytest

from ultracluster.config.schema import environment_schema
from ultracluster.config.source import parse

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schema" / "environment.schema.json").read_text("utf-8"))
SHIPPED = sorted([*ROOT.glob("environments/*.yaml"), *ROOT.glob("examples/*.yaml")])
SECTIONS = {"Environment": SCHEMA, **SCHEMA["$defs"]}


def refusals(text: str) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(parse(text).data)]


def test_the_committed_schema_is_current():
    assert environment_schema() == SCHEMA, "run `make schema`"


def test_it_is_a_valid_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert SCHEMA["title"]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_shipped_files_are_accepted(file):
    assert refusals(file.read_text("utf-8")) == []


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_shipped_files_name_their_schema(file):
    head, reference = file.read_text("utf-8").splitlines()[0].split("$schema=")
    assert head == "# yaml-language-server: "
    assert (file.parent / reference).resolve() == ROOT / "schema" / "environment.schema.json"


def test_there_are_shipped_files():
    assert len(SHIPPED) >= 3


def test_every_key_has_help():
    keys = {f"{name}.{key}": each for name in SECTIONS for key, each in SECTIONS[name]["properties"].items()}
    assert not [key for key, each in keys.items() if len(each["description"]) <= 10]


@pytest.mark.parametrize(
    ("file", "valid", "broken"),
    [
        ("minimal.yaml", "name: test", "name: Test"),
        ("minimal.yaml", "count: 2", "count: two"),
        ("minimal.yaml", "type: pcs", "type: slurm"),
        ("minimal.yaml", "region: us-east-2", "regoin: us-east-2"),
        ("minimal.yaml", "queues:", "teams:"),
        ("minimal-eks.yaml", "teams:", "queues:"),
        ("minimal-eks.yaml", "role/Platform", ""),
        ("minimal-eks.yaml", "gpus: 16", "gpus: {train: many}"),
        ("minimal-eks.yaml", "admins:", "device_stack: {gpu_operator: train}\n  admins:"),
    ],
)
def test_an_editor_sees_values_of_the_wrong_shape(file, valid, broken):
    text = (ROOT / "tests" / "unit" / "config" / file).read_text("utf-8")
    assert refusals(text) == []
    assert refusals(text.replace(valid, broken))
