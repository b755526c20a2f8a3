"""Rules between the user's boot scripts and the rest of the environment."""

from collections.abc import Iterator, Mapping

from ultracluster.config.bootstrap import Script
from ultracluster.config.network import Network
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login
from ultracluster.config.problems import Path, Problem

Nodes = Mapping[Path, NodeGroup | Login]
"""Node groups and login nodes, by their paths in the file."""

JOIN_SECONDS = 1500
"""Seconds for the user's scripts: PCS replaces a node that does not join Slurm in about 30 minutes, boot included.

Source: AWS PCS User Guide, "Best practices for node lifecycle actions" (2026).
"""


def boot_step_problems(nodes: Nodes, network: Network, *, on_pcs: bool) -> Iterator[Problem]:
    """Warnings about scripts that may take too long on PCS, and about security groups with a new VPC."""
    for path, group in nodes.items():
        if on_pcs:
            yield from _too_long(group.boot_scripts, (*path, "bootstrap"))
        if network.create and group.security_groups:
            message = "network.create makes a new VPC, and EC2 rejects security groups of other VPCs"
            hint = "deploy without security_groups and add groups of the new VPC afterwards, or use network.existing"
            yield Problem("security-groups-in-new-vpc", (*path, "security_groups"), message, hint, "warning")


def _too_long(scripts: tuple[Script, ...], at: Path) -> Iterator[Problem]:
    seconds = sum(script.timeout_seconds for script in scripts)
    if seconds > JOIN_SECONDS:
        message = (
            f"the scripts may run for {seconds} s; PCS replaces a node that has not joined Slurm after about 30 minutes"
        )
        hint = f"lower timeout_seconds to a total of {JOIN_SECONDS}, and bake long installations into an AMI"
        yield Problem("bootstrap-too-long", at, message, hint, "warning")
