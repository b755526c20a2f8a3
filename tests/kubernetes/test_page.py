"""What docs/kubernetes.md shows is what the command prints, and its figures are the queues'."""

import re

import yaml

from tests.synthesis import FILES, ROOT
from ultracluster.config.loader import load
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.quotas import cpus, efa_devices, memory_gib

PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
(FILE,) = re.findall(r"^```text\n(control_plane:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ENVIRONMENT = load(FILES["staging"])


def test_the_teams_on_the_page_are_those_of_the_file():
    plane = ENVIRONMENT.control_plane
    shown = yaml.safe_load(FILE)["control_plane"]
    assert shown["jobs"] == list(plane.jobs)
    assert [(team["name"], team["gpus"], team.get("may_borrow", False)) for team in shown["teams"]] == [
        (team.name, team.gpus, team.may_borrow) for team in plane.teams
    ]


def test_the_job_on_the_page_is_the_printed_one():
    printed = yaml.safe_dump_all(example_job(ENVIRONMENT, "pretrain", 64), sort_keys=False, width=120)
    assert f"```text\n{printed}```" in PAGE


def test_the_quota_on_the_page_is_the_teams():
    (group,) = ENVIRONMENT.node_groups
    figures = f"{efa_devices(group, 96)} EFA devices, {cpus(group, 96):,} CPUs and {memory_gib(group, 96):,} GiB"
    assert f"96 GPUs of P5en are {figures}" in " ".join(PAGE.split())


def test_every_scheduler_has_its_row():
    for scheduler in ("kueue", "volcano", "kai", "kueue_with_volcano", "kueue_with_kai"):
        assert f"\n| `{scheduler}` | " in PAGE
