"""Who creates the folders of the Lustre file system, and what keeps them from it."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.config.fleet import Fleet
from ultracluster.config.network import SubnetPlan, subnet_plan
from ultracluster.config.problems import Path, Problem
from ultracluster.config.root_squash import OFF, nid_of, node_problems, uncovered

NIDS: Path = ("storage", "lustre", "no_squash_nids")


def administration_problems(fleet: Fleet, *, on_eks: bool) -> Iterator[Problem]:
    """Problems of the folders with root squash and with links, at paths of the file.

    On PCS, root of a login node creates the folders, in the node subnet. On EKS, Jobs on system nodes do, in the
    control-plane subnets.
    """
    lustre, plan = fleet.storage.lustre, _plan(fleet)
    if lustre is None:
        return
    if on_eks:
        yield from _root_link(fleet)
    nids = lustre.no_squash_nids
    if lustre.root_squash in (None, OFF) or not nids:
        return
    if plan:
        yield from node_problems(nids, plan.node, NIDS)
    yield from _on_eks(nids, plan) if on_eks else _on_pcs(nids, plan)


def _on_eks(nids: tuple[str, ...], plan: SubnetPlan | None) -> Iterator[Problem]:
    if plan is None:
        message = "Jobs on system nodes create the folders of teams as root"
        hint = "check that no_squash_nids has all addresses of control_plane_subnet_ids"
        yield Problem("root-squash-without-folders", NIDS, message, hint, "warning")
    elif uncovered(nids, plan.control_plane):
        subnets = " and ".join(map(str, plan.control_plane))
        message = f"Jobs on system nodes, in {subnets}, create the folders of teams as root, which is squashed there"
        yield Problem("root-squash-on-eks", NIDS, message, f"add {_ranges(plan.control_plane)}")


def _on_pcs(nids: tuple[str, ...], plan: SubnetPlan | None) -> Iterator[Problem]:
    if plan is None or uncovered(nids, [plan.node]):
        message = "login nodes create the folders of queues and links as root, which is squashed there"
        hint = "deploy without root_squash first, and run the command that login nodes log on a host in no_squash_nids"
        yield Problem("root-squash-without-folders", NIDS, message, hint, "warning")


def _root_link(fleet: Fleet) -> Iterator[Problem]:
    for i, link in enumerate(fleet.storage.lustre.links if fleet.storage.lustre else ()):
        if not link.path.strip("/"):
            message = "teams mount folders of their own, so of a link of / they see only objects below teams/TEAM/"
            hint = "link a folder such as /datasets, which all teams can mount"
            at = ("storage", "lustre", "links", i, "path")
            yield Problem("link-root-on-eks", at, message, hint, "warning")


def _plan(fleet: Fleet) -> SubnetPlan | None:
    """The subnets, where the VPC is created and its CIDR is valid."""
    create = fleet.network.create
    if create is None or any(problem.severity == "error" for problem in create.problems()):
        return None
    return subnet_plan(create.block)


def _ranges(networks: tuple[IPv4Network, ...]) -> str:
    return " and ".join(map(nid_of, networks))
