"""What README and docs say is so: their files validate, their links lead somewhere, their commands exist."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scripts import environment_doc, metrics_doc
from tests.synthesis import ROOT
from ultracluster.catalog.eks import KUBERNETES_VERSIONS, MAXIMUM_NODE_GROUPS, MAXIMUM_PUBLIC_CIDRS, NODES_PER_GROUP
from ultracluster.catalog.software import addons, charts
from ultracluster.cli import app as cli
from ultracluster.config.loader import check
from ultracluster.config.report import report
from ultracluster.config.schema import environment_schema
from ultracluster.config.source import parse

README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN_ELSEWHERE = ROOT / "docs" / "errors.md"  # its examples are refused on purpose, and held by a test of their own


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def commands(page):
    """Lines of shell blocks, and code in the text."""
    code = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", code)


ENVIRONMENTS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "yaml"))
    if page != WRITTEN_ELSEWHERE
]


@pytest.mark.parametrize("text", ENVIRONMENTS)
def test_environment_files_are_fine_without_a_warning(text):
    assert [finding.message for finding in check(parse(text)).findings] == []


def test_readme_has_an_environment_file():
    assert len(blocks(README, "yaml")) == 1


def test_the_report_in_readme_is_the_real_one():
    (text,) = blocks(README, "yaml")
    reading = check(parse(text.replace("capacity_gib: 96000", "capacity_gib: 90000")), "environments/prod.yaml")
    assert report(reading) + "\n" in blocks(README, "text")


def test_the_kubernetes_block_in_readme_fits_its_environment_file():
    (text,) = blocks(README, "yaml")
    (block,) = (block for block in blocks(README, "text") if block.startswith("control_plane:"))
    reading = check(parse(text.partition("control_plane:")[0] + block))
    assert [finding.code for finding in reading.findings] == ["lustre-efa-on-eks"]


def test_the_job_in_readme_can_be_printed():
    (words,) = (line.split()[1:] for line in commands(README) if line.startswith("ultracluster job "))
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, "kind: JobSet" in done.output) == (0, True)


def test_what_readme_shows_of_a_cluster_is_pinned_so():
    shown = next(block for block in blocks(README, "text") if "EKS cluster" in block)
    assert KUBERNETES_VERSIONS["1.35"].image_release in shown
    assert f"vpc-cni {addons['vpc-cni'].versions['1.35']}" in re.sub(" +", " ", shown)
    assert f"gpu-operator {charts['gpu-operator'].version} in" in shown


def test_defaults_of_quotas_of_eks_are_those_of_the_catalogue():
    page = (ROOT / "docs" / "operations-kubernetes.md").read_text()
    found = re.findall(r"^\| EKS, .* \| (\d+)", page, re.MULTILINE)
    assert [int(number) for number in found] == [MAXIMUM_NODE_GROUPS, NODES_PER_GROUP, MAXIMUM_PUBLIC_CIDRS]


def test_the_consumer_app_in_readme_is_the_tested_one():
    assert blocks(README, "python") == [(ROOT / "examples" / "consumer" / "app.py").read_text()]


def broken(page, target):
    if target.startswith("https://"):
        return False
    file, _, anchor = target.partition("#")
    found = (page.parent / file).resolve() if file else page
    return not found.exists() or (anchor and anchor not in anchors(found))


def test_links_lead_somewhere():
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    assert links
    assert not [(page.name, target) for page, target in links if broken(page, target)]


def test_named_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for page in PAGES for line in commands(page) if line.startswith("make ")]
    named = {word for line in lines for word in line.split("#")[0].split()[1:] if "=" not in word}
    assert named <= targets


def test_named_subcommands_exist():
    known = {command.name for command in cli.registered_commands} | {group.name for group in cli.registered_groups}
    lines = [line for page in PAGES for line in commands(page)]
    assert {line.split()[1] for line in lines if re.match(r"ultracluster [a-z]", line)} <= known


def test_shell_lines_that_reach_an_account_say_so():
    reaching = r"(npx cdk (bootstrap|deploy|diff|destroy)|aws |kubectl |.*srun)"
    told = [block for page in PAGES for block in blocks(page, "bash") if ". .localaws/env" not in block]
    lines = [line for block in told for line in block.splitlines() if re.match(reaching, line)]
    assert not [line for line in lines if "(account)" not in line]


def test_named_files_exist():
    paths = r"`((?:infra|tests|docs|schema|environments|examples|scripts)/[\w./-]*)`"
    named = [(page.name, path) for page in PAGES for path in re.findall(paths, page.read_text())]
    assert not [(page, path) for page, path in named if "NAME" not in path and not (ROOT / path).exists()]


def test_the_reference_of_the_environment_file_is_current():
    assert environment_doc.DOC.read_text() == environment_doc.page()


@pytest.mark.parametrize("doc", metrics_doc.PAGES, ids=lambda doc: doc.name)
def test_the_tables_of_metrics_are_those_of_the_code(doc):
    assert doc.read_text() == metrics_doc.page(doc.read_text())


def _without_extends(definition):
    """Keys that a file has to have unless another one may have them for it."""
    return definition.get("then", {}).get("required", ())


def test_every_key_has_a_meaning_in_the_reference():
    page, schema = environment_doc.DOC.read_text(), environment_schema()
    for name, definition in {"Environment": schema, **schema["$defs"]}.items():
        section = page.split(f"\n## {environment_doc.SECTIONS[name]}\n")[1].split("\n## ")[0]
        for key in definition["properties"]:
            cells = re.findall(rf"^\| `{key}` \| (.+) \| (.+) \| (.+) \| (.+) \|$", section, re.M)[0]
            meaning, allowed, default, _change = cells
            assert meaning.endswith((".", "none.")), key
            assert (default == "required") is (key in {*definition.get("required", ()), *_without_extends(definition)})
            assert allowed, key
            assert default, key


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_of_this_machine_is_named(page):
    assert not re.search(r"/work/|/root/|/home/", page.read_text())


def test_pages_are_found():
    assert {Path("docs/operations.md"), Path("docs/performance.md")} <= {page.relative_to(ROOT) for page in PAGES}
