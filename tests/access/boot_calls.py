"""Rows for what node groups name for themselves: scripts in S3, and further policies of their role."""

import base64
import re
from collections.abc import Iterator
from typing import Any

from tests.access.account import SITE_POLICY, Account, Role
from tests.access.shared_calls import OURS
from tests.access.slurm_calls import _node_role, _via
from tests.access.table import ANYBODY, OTHER_ACCOUNT, Call, may, never
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Pcs

VERSIONS = "Amazon S3 User Guide, Required permissions: GetObject of a version"
READS = ("s3:GetObject", "s3:GetObjectVersion")


def boot_calls(account: Account, environment: Environment) -> list[Call]:
    """Rows for groups of nodes and login nodes with `bootstrap` or `policies`."""
    calls, roles = [], dict(_roles(account, environment))
    for name, group in _groups(environment):
        if SITE_POLICY in group.policies:
            others = [role for other, role in roles.items() if other != name and role.arn != roles[name].arn]
            action, source = "license-manager:CheckoutLicense", "policies of the node group"
            calls += may(roles[name], action, "*", source)
            calls += [call for role in others for call in never(role, action, "*", source)]
        if group.boot_scripts and account.of_type("AWS::EKS::Nodegroup"):
            calls += _downloads(account, name, roles[name])
        for script in group.boot_scripts:
            if script.bucket_and_key:
                calls += _reads(account, roles[name], *script.bucket_and_key)
    return calls


def _groups(environment: Environment) -> Iterator[tuple[str, NodeGroup | Login]]:
    yield from ((group.name, group) for group in environment.node_groups)
    if isinstance(environment.control_plane, Pcs):
        yield "login", environment.control_plane.login


def _roles(account: Account, environment: Environment) -> Iterator[tuple[str, Role]]:
    """The role of the nodes of each group, whose names begin with that in the file."""
    for name, _ in _groups(environment):
        for found in account.of_type("AWS::PCS::ComputeNodeGroup"):
            if found.properties["Name"].rpartition("-")[0] == name:
                yield name, _node_role(account, found)
        for found in account.of_type("AWS::EKS::Nodegroup"):
            if found.properties["NodegroupName"].rpartition("-")[0] == name:
                yield name, account.role_of(found.properties["NodeRole"])


def _downloads(account: Account, name: str, role: Role) -> list[Call]:
    """The steps of an EKS group, which user data download from the CDK's bucket; `scripts` has those of PCS."""
    [group] = [
        found
        for found in account.of_type("AWS::EKS::Nodegroup")
        if found.properties["NodegroupName"].rpartition("-")[0] == name
    ]
    [template] = [
        found
        for found in account.of_type("AWS::EC2::LaunchTemplate")
        if found.ref == group.properties["LaunchTemplate"]["Id"]
    ]
    user_data = base64.b64decode(template.properties["LaunchTemplateData"]["UserData"]).decode()
    [(bucket, key)] = re.findall(r"run-from-s3 '([a-z0-9-]+)' ([0-9a-f]{64}\.sh)", user_data)
    source = "EKS User Guide, Customize managed nodes with launch templates"
    return [
        *may(role, "s3:GetObject", f"arn:aws:s3:::{bucket}/{key}", source, via=_via(account, "s3")),
        *never(role, "s3:GetObject", f"arn:aws:s3:::{bucket}/template-of-another-stack.json", OURS),
        *never(role, "s3:PutObject", f"arn:aws:s3:::{bucket}/{key}", "nobody changes what other nodes run"),
    ]


def _reads(account: Account, role: Role, bucket: str, key: str) -> list[Call]:
    """The script, in any account whose bucket policy allows it, and no other object."""
    arn, opened = f"arn:aws:s3:::{bucket}", _opened()
    via = _via(account, "s3")
    calls = [
        *may(role, READS, f"{arn}/{key}", VERSIONS, via=via, **opened),
        *never(role, READS, f"{arn}/another.sh", OURS, **opened),
        *never(role, ("s3:PutObject", "s3:DeleteObject"), f"{arn}/{key}", "nodes run what it holds", **opened),
    ]
    if via:
        calls += may("anonymous", READS, f"{arn}/{key}", VERSIONS, via=via, **opened)
        calls += never("anonymous", "s3:PutObject", f"{arn}/{key}", "no copies to other accounts", via=via, **opened)
        calls += never("anonymous", READS, f"{arn}/another.sh", OURS, via=via, **opened)
    return calls


def _opened() -> dict[str, Any]:
    return {"owner": OTHER_ACCOUNT, "resource_policy": ANYBODY}
