"""The environments whose table is judged: shipped files, and variants with existing buckets and a boundary."""

from functools import cache
from typing import Any

from tests.access.account import ACCOUNT, Account, Document
from tests.access.kubernetes_calls import kubernetes_calls
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

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dev-existing": ("dev", {"storage": EXISTING}),
    "staging-existing": ("staging", {"storage": EXISTING}),
    "staging-bounded": ("staging", {"permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary"}),
}
"""Changes of a shipped file, by name."""

ENVIRONMENTS = ("dev", "prod", "staging", "eks-volcano", "p5.48xlarge", "eks-gb200", "dev-existing", "staging-existing")


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
    rows = (shared_calls, slurm_calls, kubernetes_calls)
    return [call for part in rows for call in part(account, environment)]
