"""The environments whose table is judged: shipped files, and variants with existing buckets and a boundary."""

from functools import cache
from typing import Any

from tests.access.account import ACCOUNT, SITE_POLICY, Account, Document
from tests.access.boot_calls import boot_calls
from tests.access.kubernetes_calls import kubernetes_calls
from tests.access.people_calls import people_calls
from tests.access.shared_calls import shared_calls
from tests.access.slurm_calls import slurm_calls
from tests.access.table import Call
from tests.synthesis import FILES, synthesise, templates
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load

EVERYTHING: Document = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}

THEIR_KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/01234567-89ab-cdef-0123-456789abcdef"

FINISHED_KEY = THEIR_KEY.replace("01234567", "89abcdef")

EXISTING = {
    "buckets": {
        "datasets": {},
        "archive": {"existing": "their-archive", "key_arn": THEIR_KEY},
        "plain": {"existing": "plain"},
        "finished": {"existing": "finished", "key_arn": FINISHED_KEY, "access": "read"},
        "scratch": {"access": "write_and_delete"},
        "frozen": {"access": "read"},
    },
    "read_only_buckets": ["commoncrawl"],
}
"""Storage with buckets of other owners, a public data set, and each kind of access."""

SCRIPT = {"s3": "s3://their-scripts/site/setup.sh", "version_id": "3Kjq8Zb", "sha256": "0" * 64}
"""A boot step in a bucket of somebody else."""

EXISTING_LUSTRE = {"name": "models", "type": "lustre", "existing": "fs-0123456789abcdef1", "mount_path": "/models"}

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqfBPpZC4IdMUN5PvSAFP3YAvWJ3f6Zp7+0JRfGSTQk ada"

USERS = {"users": [{"name": "ada", "uid": 2001, "keys": [PUBLIC_KEY]}]}

DIRECTORY = {
    "type": "ad",
    "domain": "corp.example.com",
    "ldap_urls": ["ldaps://dc1.corp.example.com"],
    "secret_arn": f"arn:aws:secretsmanager:us-east-2:{ACCOUNT}:secret:directory-a1b2c3",
    "secret_key_arn": THEIR_KEY,
    "groups": ["cluster"],
}

SLURM_GROUPS = [
    {"name": "train", "instance_type": "p5.4xlarge", "count": 1, "bootstrap": [SCRIPT], "policies": [SITE_POLICY]},
    {"name": "prep", "instance_type": "c7i.4xlarge", "count": 1},
]
SLURM = {
    "type": "pcs",
    "slurm_version": "25.11",
    "login": {"bootstrap": [SCRIPT]},
    "queues": [{"name": "train", "node_groups": ["train", "prep"]}],
}
EKS_GROUPS = [
    {"name": "train", "instance_type": "p5en.48xlarge", "count": 16, "bootstrap": [SCRIPT], "policies": [SITE_POLICY]},
    {"name": "prep", "instance_type": "c7i.4xlarge", "count": 1},
]

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dev-existing": ("dev", {"storage": EXISTING}),
    "staging-existing": ("staging", {"storage": EXISTING}),
    "staging-bounded": ("staging", {"permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary"}),
    "dev-thrown-away": (
        "dev",
        {
            "retain": False,
            "access": {"host": True, "users": USERS},
            "storage": {
                **EXISTING,
                "home": {"type": "openzfs", "capacity_gib": 64, "throughput_mbps": 160},
                "more": [EXISTING_LUSTRE],
            },
            "node_groups": SLURM_GROUPS,
            "control_plane": SLURM,
        },
    ),
    "dev-directory": ("dev", {"access": {"host": True, "directory": DIRECTORY}}),
    "staging-thrown-away": (
        "staging",
        {
            "retain": False,
            "access": {"host": True, "directory": DIRECTORY},
            "storage": {
                "buckets": {"datasets": {}},
                "home": {"type": "efs"},
                "more": [
                    {
                        "name": "work",
                        "type": "openzfs",
                        "capacity_gib": 64,
                        "throughput_mbps": 160,
                        "mount_path": "/work",
                    }
                ],
            },
            "node_groups": EKS_GROUPS,
        },
    ),
}
"""Changes of a shipped file, by name."""

JUDGED = ("dev", "prod", "staging", "eks-volcano", "p5.48xlarge", "eks-gb200")
"""Shipped files whose every row is judged; the others have the same parts."""

CHANGED = ("dev-existing", "staging-existing", "dev-thrown-away", "dev-directory", "staging-thrown-away")

ENVIRONMENTS = (*JUDGED, *CHANGED)


@cache
def environment_of(name: str) -> Environment:
    """A shipped environment, or a variant of one."""
    if name not in VARIANTS:
        return load(FILES[name])
    shipped, changes = VARIANTS[name]
    return Environment.model_validate(load(FILES[shipped]).model_dump(mode="json", exclude_unset=True) | changes)


@cache
def account_of(name: str) -> Account:
    """The account that the templates of an environment would create."""
    environment = environment_of(name)
    found = synthesise(environment) if name in VARIANTS else templates(name)
    return Account(environment.name, environment.region, found, boundary=EVERYTHING)


@cache
def table(name: str) -> list[Call]:
    """Rows of an environment."""
    account, environment = account_of(name), environment_of(name)
    rows = (shared_calls, slurm_calls, kubernetes_calls, people_calls, boot_calls)
    return [call for part in rows for call in part(account, environment)]
