"""Saved queries: the service can parse them, and their patterns find what nodes and jobs write."""

import re

import pytest

from localaws.services.logs_queries import query_problem, stages
from ultracluster.telemetry.log_queries import FAULT, LUSTRE, XID, kubernetes_queries, slurm_queries

QUERIES = [*slurm_queries(), *kubernetes_queries()]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.source}-{query.name}")
def test_logs_insights_can_parse_each_query(query):
    assert query_problem(query.text) is None
    assert len(query.text) <= 10_000
    assert len(list(stages(query.text))) > 1


def test_names_differ_within_a_control_plane():
    for queries in (slurm_queries(), kubernetes_queries()):
        names = [query.name for query in queries]
        assert len(set(names)) == len(names)


def pattern(text):
    """A pattern as Python writes it: named groups have a P, and flags come first."""
    return re.compile(text.strip("/").replace("(?<", "(?P<"))


def test_the_kernels_xid_lines_give_device_and_number():
    line = "kernel: NVRM: Xid (PCI:0000:97:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    assert pattern(XID).search(line).groupdict() == {"device": "PCI:0000:97:00", "xid": "79"}


@pytest.mark.parametrize(
    "line",
    [
        "LustreError: 11-0: fsx-OST0000-osc: operation ost_write failed with -107",
        "Lustre: fsx-OST0001-osc: Connection to fsx-OST0001 (at 10.0.0.1@tcp) was lost",
    ],
)
def test_lustres_messages_are_found(line):
    assert pattern(LUSTRE).search(line)


@pytest.mark.parametrize("line", ["Traceback (most recent call last):", "RuntimeError: CUDA", "NCCL WARN Timeout"])
def test_faults_of_jobs_are_found(line):
    assert pattern(FAULT).search(line)


def test_what_to_replace_is_named():
    assert {word for query in QUERIES for word in re.findall(r"\b(JOB|NODE)\b", query.text)} == {"JOB", "NODE"}
