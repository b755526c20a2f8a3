"""`ultracluster catalog` and `ultracluster schema`: tables and JSON."""

import json

import pytest
from typer.testing import CliRunner

from ultracluster.catalog import catalog, interface_layout, ultraservers
from ultracluster.catalog.ec2_types import family_types
from ultracluster.cli import app
from ultracluster.config.schema import environment_schema


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("columns", "width", "parts"), [("40", 80, 2), ("80", 80, 2), ("120", 120, 1), ("200", 200, 1)]
)
def test_the_tables_show_every_type_and_ultraserver_within_the_terminal(run, monkeypatch, columns, width, parts):
    monkeypatch.setenv("COLUMNS", columns)
    done = run("catalog")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert max(map(len, lines)) <= width
    assert "…" not in done.stdout
    order = [line.split()[0] for line in lines if line.strip().startswith(("p5", "p6", "u-p6"))]
    assert order == [*catalog] * parts + [*ultraservers] * parts


def test_a_narrow_terminal_shows_the_same_figures(run, monkeypatch):
    wide = run("catalog").stdout
    monkeypatch.setenv("COLUMNS", "80")
    rows = [line.split() for line in run("catalog").stdout.splitlines() if line.split()[:1] == ["p6-b300.48xlarge"]]
    first, second = rows
    assert " ".join([*first, *second[1:]]) in " ".join(wide.split())


@pytest.mark.parametrize("name", [*catalog, *ultraservers])
def test_the_details_of_a_type_fit_a_narrow_terminal(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("catalog", name)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "…" not in done.stdout


def test_a_profile_that_adds_nothing_says_so(run):
    text = run("catalog", "p5en.48xlarge").stdout
    assert "max_bandwidth       as fewest_ips: AWS documents no further ENA interfaces for this type" in text
    assert "as fewest_ips" not in run("catalog", "p5.48xlarge").stdout


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("p5.4xlarge", "16 256 x86 1 H100 80 3.35 0.99 1.98 - - v2 1x100 12.5 3.8 OSB"),
        ("p5en.48xlarge", "192 2,048 x86 8 H200 1,128 38.4 7.92 15.8 - 7.2 v3 16x200 400 30.4 OSB"),
        ("p6-b300.48xlarge", "192 4,096 x86 8 B300 2,148 64 18 36 108 14.4 v4 16x400 800 30.4 OSB"),
        ("p6e-gb200.36xlarge", "144 960 arm 4 GB200 740 32 9 18 36 7.2 v3 4x400 200 22.5 B"),
        ("u-p6e-gb200x72", "18 p6e-gb200.36xlarge 72 GB200 13.4 576 162 324 648 130 3,600"),
    ],
)
def test_figures_of_a_row(run, name, cells):
    row = next(line for line in run("catalog").stdout.splitlines() if line.split()[:1] == [name])
    assert " ".join(row.split()) == f"{name} {cells}"


@pytest.mark.parametrize("name", catalog)
def test_all_facts_of_one_type_are_shown(run, name):
    done, entry = run("catalog", name), catalog[name]
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 120
    for words in (
        entry.architecture,
        f"{entry.gpu_count} x NVIDIA {entry.gpu.model}",
        f"{entry.efa.gb_per_s:g} GB/s",
        "fewest_ips",
        "max_bandwidth",
        "efa_with_ip",
        entry.software.efa_installer,
        "EC2 User Guide (2026)",
    ):
        assert words in done.stdout


def test_cards_and_layouts_are_shown_as_ranges(run):
    text = run("catalog", "p5.48xlarge").stdout
    assert "cards 0-31" in text
    assert "40 interfaces, 32 EFA, 8 IPv4 addresses" in text
    assert "interface at device 1 of cards 4, 8, 12, 16, 20, 24, 28" in text


@pytest.mark.parametrize("name", ultraservers)
def test_one_ultraserver_is_shown(run, name):
    done = run("catalog", name)
    assert done.exit_code == 0
    assert f"{ultraservers[name].gpus} x NVIDIA GB200 in one NVLink domain" in done.stdout


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_an_unknown_type_gives_similar_names_and_exits_with_1(run, arguments):
    done = run("catalog", "p5n.48xlarge", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "did you mean p5en.48xlarge" in done.stderr


def test_a_family_lists_its_sizes(run):
    shown = run("catalog", "g6e")
    assert (shown.exit_code, shown.stderr) == (0, "")
    listed = [line.split()[0] for line in shown.stdout.splitlines() if line.strip().startswith("g6e.")]
    assert listed == [*family_types("g6e")]
    assert [each["name"] for each in json.loads(run("catalog", "g6e", "--json").stdout)["instance_types"]] == listed


@pytest.mark.parametrize("name", ["trn1.32xlarge", "g6f.large", "g6f"])
def test_a_type_that_node_groups_refuse_says_so(run, name):
    assert "supported are whole NVIDIA GPUs, and types without accelerators" in " ".join(
        run("catalog", name).stdout.split()
    )
    assert "efuse" not in run("catalog", "g6e.xlarge").stdout


def test_json_holds_every_type(run):
    data = json.loads(run("catalog", "--json").stdout)
    assert [entry["name"] for entry in data["instance_types"]] == list(catalog)
    assert [entry["name"] for entry in data["ultraservers"]] == list(ultraservers)


def test_json_of_one_type_holds_cards_layouts_and_sources(run):
    data = json.loads(run("catalog", "p6-b300.48xlarge", "--json").stdout)
    entry = catalog["p6-b300.48xlarge"]
    assert len(data["network_cards"]) == 17
    assert data["efa"]["gb_per_s"] == 800
    layout = data["interface_layouts"]["max_bandwidth"]
    assert layout["ipv4_addresses"] == 17
    assert [tuple(i.values()) for i in layout["interfaces"]] == [
        tuple(i) for i in interface_layout(entry, "max_bandwidth")
    ]
    assert set(data["sources"]) == {
        "ec2_instance_types",
        "ec2_user_guide",
        "gpus",
        "published",
        "offerings",
        "training",
    }


def test_json_of_one_ultraserver(run):
    data = json.loads(run("catalog", "u-p6e-gb200x36", "--json").stdout)
    assert (data["instances"], data["gpus"], data["efa_gb_per_s"]) == (9, 36, 1800)


def test_schema_is_printed_as_json(run):
    done = run("schema")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == environment_schema()
