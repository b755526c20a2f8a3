"""The loader reports all problems at once, in file order, with their place."""

import json
import os

import pytest
from pydantic import ValidationError

from tests.bad_files import FOLDER, file_of
from ultracluster.config.loader import RefusedEnvironment, check, load, validate
from ultracluster.config.problems import Problem, dotted
from ultracluster.config.report import report, report_json
from ultracluster.config.source import parse

VALID = (FOLDER / "minimal.yaml").read_text("utf-8")


def refusals(*changes):
    text = VALID
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return check(parse(text))


def codes(reading):
    return [finding.code for finding in reading.findings]


def test_everything_is_reported_at_once_in_file_order():
    reading = refusals(
        ("name: test", "name: Test"),
        ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/8"),
        ("capacity_gib: 1200", "capacity_gib: 1000, efa: yes"),
        ("instance_type: p5.48xlarge", "instance_type: p5n.48xlarge"),
        ("type: pcs", "type: slurm"),
    )
    assert codes(reading) == [
        "invalid-format",
        "cidr-size",
        "wrong-type",
        "unknown-instance-type",
        "value-not-allowed",
    ]
    assert reading.environment is None


def test_rules_of_the_whole_are_reported_beside_rules_of_a_section():
    reading = refusals(
        ("us-east-2b", "us-west-2b"),
        ("capacity_gib: 1200", "capacity_gib: 1000"),
        ("node_groups: [train]", "node_groups: [trian]"),
    )
    expected = ["zone-outside-region", "lustre-capacity", "queue-node-group-unknown"]
    assert codes(reading) == expected


def test_refused_entries_do_not_make_a_list_too_short():
    assert codes(refusals(("count: 2", "count: two"))) == ["wrong-type"]


def test_a_finding_has_a_path_and_a_position():
    (finding,) = refusals(("capacity_gib: 1200", "capacity_gib: 1000")).findings
    assert (finding.path, finding.line, finding.column) == ("storage.lustre.capacity_gib", 8, 12)


def test_a_missing_key_is_placed_at_its_section():
    (finding,) = refusals((", throughput_mbps_per_tib: 125", "")).findings
    assert (finding.path, finding.line) == ("storage.lustre.throughput_mbps_per_tib", 8)


def test_a_section_used_twice_is_reported_in_both_places():
    group = (
        "{name: train, instance_type: p5.48xlarge, count: 2, purchase: {type: on_demand}, image: ami-0123456789abcdef0}"
    )
    reading = refusals(
        (group, "&group " + group.replace("p5.48", "p9.48") + "\n  - *group"),
    )
    assert [finding.path for finding in reading.findings if finding.code == "unknown-instance-type"] == [
        "node_groups[0].instance_type",
        "node_groups[1].instance_type",
    ]


def test_warnings_do_not_refuse():
    reading = refusals(("image: ami-0123456789abcdef0", "image: auto"))
    assert codes(reading) == ["image-not-pinned"]
    assert reading.errors == ()
    assert reading.environment is not None


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("capacity_gib: 1200", "capacity_gib: 4800, efa: true, throughput: 3", "unknown-key"),
        ("throughput_mbps_per_tib: 125", "throughput_mbps_per_tib: 200, efa: true", "lustre-throughput-tier"),
        ("image: ami-0123456789abcdef0", "image: ami-0123456789abcdef0, '<text>': 1", "unknown-key"),
        ("image: ami-0123456789abcdef0", "image: ami-0123456789abcdef0, '[key]': 1", "unknown-key"),
        ("count: 2", "count: {min: 1, max: 0}", "out-of-range"),
        ("count: 2", "count: {min: 1}", "missing-key"),
        ("count: 2", "count: true", "wrong-type"),
        ("count: 2", "count: 1e400", "wrong-type"),
        ("count: 2", "count: 1000000000000000000000000000000", "subnet-too-small"),
        ("purchase: {type: on_demand}", "purchase:", "wrong-type"),
        ("[{name: train, node_groups: [train]}]", "[~]", "wrong-type"),
        ("storage:", "tags:\n  - a\nstorage:", "wrong-type"),
        ("datasets: {}", "Datasets: {}", "invalid-format"),
        ("datasets: {}", "datasets: 5", "wrong-type"),
        ("datasets: {}", "'': {}", "invalid-format"),
    ],
)
def test_odd_values_are_refused_with_a_code(old, new, code):
    assert code in codes(refusals((old, new)))


def test_block_names_are_reserved():
    ultra = "purchase: {type: capacity_block, ultraserver: u-p6e-gb200x36, reservation_ids: [cr-01234567, cr-12345678]}"
    reading = refusals(
        ("region: us-east-2", "region: us-east-1"),
        ("zone: us-east-2b", "zone: us-east-1-dfw-2a"),
        (
            "  - {name: train, instance_type: p5.48xlarge, count: 2,",
            f"  - {{name: ultra, instance_type: p6e-gb200.36xlarge, count: 18, {ultra}}}\n"
            "  - {name: ultra-2, instance_type: p5.48xlarge, count: 2,",
        ),
        (
            "[{name: train, node_groups: [train]}]",
            "[{name: ultra, node_groups: [ultra]}, {name: train, node_groups: [ultra-2]}]",
        ),
    )
    assert [error.code for error in reading.errors] == ["duplicate-name"]
    assert reading.errors[0].message == "ultra-2 is already the name of a block of ultra"


def test_load_gives_the_environment(tmp_path):
    assert load(FOLDER / "minimal.yaml").name == "test"


def test_load_raises_with_the_report():
    file = file_of("cidr-size")
    with pytest.raises(RefusedEnvironment) as caught:
        load(file)
    assert str(caught.value) == report(validate(file))
    assert caught.value.reading.errors


def test_an_environment_is_frozen():
    with pytest.raises(ValidationError):
        load(FOLDER / "minimal.yaml").name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("a",), "a"), (("a", 0, "b"), "a[0].b"), (("a", "b", 1, 2), "a.b[1][2]")],
)
def test_dotted(path, text):
    assert dotted(path) == text


def test_a_problem_at_a_key_or_a_path():
    assert Problem("count-range", "min", "m", "h").path == ("min",)
    assert Problem("count-range", ("a", 0), "m", "h").path == ("a", 0)


def test_the_report_wraps_and_puts_the_code_on_the_right():
    lines = report(validate(file_of("lustre-efa-capacity"))).splitlines()
    assert max(map(len, lines[1:])) <= 108
    assert lines[-1].endswith("[lustre-efa-capacity]")


def test_json_and_report_agree():
    reading = validate(file_of("reservation-id-format-arn"))
    (entry,) = json.loads(report_json([reading]))
    words = " ".join(report(reading).split())
    assert entry["path"] in words
    assert entry["message"] in words
    assert set(entry) == {"code", "path", "message", "hint", "severity", "line", "column", "file"}


@pytest.mark.parametrize(
    ("setting", "hint"), [("PriorityType", "remove PriorityType"), ("PriorityMaxAg", "did you mean PriorityMaxAge?")]
)
def test_only_similar_slurm_settings_are_suggested(setting, hint):
    (finding,) = refusals(("type: pcs", f"type: pcs\n  slurm_settings: {{{setting}: x}}")).errors
    assert (finding.code, finding.hint) == ("slurm-setting-not-allowed", hint)


def test_a_pipe_is_refused_at_once(tmp_path):
    """Reading a named pipe would wait for a writer for ever."""
    pipe = tmp_path / "environment.yaml"
    os.mkfifo(pipe)
    (finding,) = validate(pipe).findings
    assert (finding.code, finding.message) == ("file-unreadable", "the file is a pipe or a device")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_refused(device):
    (finding,) = validate(device).findings
    assert finding.message == "the file is a pipe or a device"
