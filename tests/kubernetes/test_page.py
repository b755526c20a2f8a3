"""docs/kubernetes.md shows the job that the command prints, and the figures of the queues."""

import re

import yaml

from tests.synthesis import FILES, ROOT
from ultracluster.config.loader import load
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.quotas import cpus, efa_devices, memory_gib

PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
(FILE,) = re.findall(r"^```text\n(control_plane:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ENVIRONMENT = load(FILES["staging"])


def test_the_page_shows_the_teams_of_the_file():
    plane = ENVIRONMENT.control_plane
    shown = yaml.safe_load(FILE)["control_plane"]
    assert shown["jobs"] == list(plane.jobs)
    assert [(team["name"], team["gpus"], team.get("may_borrow", False)) for team in shown["teams"]] == [
        (team.name, team.gpus, team.may_borrow) for team in plane.teams
    ]


def test_the_page_shows_the_job_that_the_command_prints():
    *objects, files = example_job(ENVIRONMENT, "pretrain", 64)
    printed = yaml.safe_dump_all(objects, sort_keys=False, width=120)
    assert files["kind"] == "ConfigMap"
    digest = re.compile(r"job-files-[0-9a-f]{10}")  # of the files of this version
    assert f"```text\n{digest.sub('', printed)}```" in digest.sub("", PAGE)


def test_the_page_shows_the_teams_quota():
    (group,) = ENVIRONMENT.node_groups
    figures = f"{efa_devices(group, 96)} EFA devices, {cpus(group, 96):,} CPUs and {memory_gib(group, 96):,} GiB"
    assert f"96 GPUs of P5en are {figures}" in " ".join(PAGE.split())


def test_the_page_has_a_row_for_every_scheduler():
    for scheduler in ("kueue", "volcano", "kai", "kueue_with_volcano", "kueue_with_kai"):
        assert f"\n| `{scheduler}` | " in PAGE
