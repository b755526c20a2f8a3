"""The embedded AWS: CloudFormation and the services that CDK apps use, in this process or behind a server on loopback.

`local_aws()` answers boto3 in this process; `serve()` starts a server that answers any AWS client of this machine.
"""

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from localaws import accounts
from localaws.estimates import Estimate
from localaws.server import Server, ServerError, serve, status, stop

if TYPE_CHECKING:
    from localaws.faults import Name, Operation

__all__ = [
    "Estimate",
    "Server",
    "ServerError",
    "contents",
    "estimate",
    "inject",
    "local_aws",
    "serve",
    "status",
    "stop",
]


@functools.cache
def activate() -> None:
    """Add to moto, once in this process, everything that it lacks for the embedded AWS."""
    from localaws import api, services

    importlib.import_module("localaws.handlers")
    accounts.activate()
    services.activate()
    api.install()


@contextlib.contextmanager
def local_aws(account: str = accounts.DEFAULT) -> Iterator[None]:
    """An empty embedded AWS that answers boto3 in the `with` block. Stack operations end before their call returns."""
    import boto3
    from moto import mock_aws

    from localaws import faults, resources

    activate()
    faults.clear()
    # AWS's managed policies are attached to the bootstrap stack's roles.
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        os.environ["AWS_ACCESS_KEY_ID"] = accounts.access_key(account)  # mock_aws restores it
        boto3.setup_default_session(botocore_session=resources.new_session())  # mock_aws ends it
        yield


def inject(
    name: "Name", on: str, *, times: int = 1, operations: "tuple[Operation, ...]" = ("create", "update")
) -> None:
    """In `local_aws()`, fail the next `times` of these operations on a resource type or logical id.

    `name`: insufficient-capacity, throttling, quota-exceeded or access-denied. A server has its own: `Server.inject`.
    Raises ValueError for unknown names.
    """
    from localaws import faults

    faults.inject(name, on, times=times, operations=operations)


def contents(cluster_arn: str) -> dict[str, Any] | None:
    """In `local_aws()`, the `namespaces`, `releases` and `objects` of an EKS cluster; None for an unknown cluster."""
    from localaws.services import kubernetes

    return kubernetes.contents(cluster_arn)


def estimate(concurrency: int = 1) -> Estimate:
    """In `local_aws()`, how long the stack operations so far would take in an account. A server: `Server.estimate`.

    `concurrency`: stacks that the CDK CLI deploys at a time, its option of that name. Raises ValueError below 1.
    """
    from localaws import estimates, stacks

    return estimates.estimate(stacks.operations(), concurrency)
