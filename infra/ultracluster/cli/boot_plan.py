"""What the nodes of an environment do at boot, as text and as JSON: `ultracluster validate --explain`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap

from ultracluster.config.findings import Reading
from ultracluster.config.layout import printable
from ultracluster.config.report import report, report_json
from ultracluster.nodes.plan import BootPlan, PlannedStep, boot_plans

CHECKSUM_SHOWN = 16
"""Characters of a SHA-256 in the text; JSON has all of them."""


def plan_text(reading: Reading, *, width: int) -> str:
    """The report of a file, then the steps of each group of nodes, in at most `width` columns."""
    blocks = [report(reading, width=width)]
    for plan in boot_plans(reading.environment) if reading.environment else ():
        blocks += ["", *_group(plan, width)]
    return "\n".join(blocks)


def plan_json(readings: Sequence[Reading]) -> str:
    """A JSON list with an object for each file: file, findings, and nodes with their steps."""
    found = [
        {
            "file": reading.file,
            "findings": json.loads(report_json([reading])),
            "nodes": [asdict(plan) for plan in boot_plans(reading.environment)] if reading.environment else [],
        }
        for reading in readings
    ]
    return json.dumps(found, indent=2)


def _group(plan: BootPlan, width: int) -> Iterator[str]:
    count = f"{plan.minimum_nodes} to {plan.nodes}" if plan.minimum_nodes < plan.nodes else f"{plan.nodes}"
    nodes = f"{count} node{'s' if plan.nodes > 1 else ''}"
    yield f"  {plan.name}: {nodes} of {' or '.join(plan.instance_types)}"
    for number, step in enumerate(plan.steps, 1):
        yield from wrap(
            printable(_sentence(step)),
            width,
            initial_indent=f"  {number:>3}. ",
            subsequent_indent="       ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    for title, names in (("policies", plan.policies), ("security groups", plan.security_groups)):
        if names:
            yield f"       {title}: {names[0]}"
            yield from (f"         {name}" for name in names[1:])


def _sentence(step: PlannedStep) -> str:
    does = step.does
    if step.sha256:
        does = f"{does}, SHA-256 {step.sha256[:CHECKSUM_SHOWN]}..., at most {step.timeout_seconds} s"
    return f"{step.name}: {does}. At {step.frequency}. If it fails, {step.failure}."
