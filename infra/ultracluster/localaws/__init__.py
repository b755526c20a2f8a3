"""The embedded AWS: CloudFormation and the services of a GPU cluster, in this process or behind a server on loopback.

`local_aws()` answers boto3 in this process; `server.start()` answers any AWS client of this machine.
"""

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator

from ultracluster.localaws import accounts

__all__ = ["activate", "local_aws"]


@functools.cache
def activate() -> None:
    """Add to moto, once in this process, everything that it lacks for the embedded AWS."""
    from ultracluster.localaws import api, services

    importlib.import_module("ultracluster.localaws.handlers")
    accounts.activate()
    services.activate()
    api.install()


@contextlib.contextmanager
def local_aws(account: str = accounts.DEFAULT) -> Iterator[None]:
    """An empty embedded AWS that answers boto3 in the `with` block. Stack operations end before their call returns."""
    from moto import mock_aws

    from ultracluster.localaws import faults

    activate()
    faults.clear()
    # AWS's managed policies are attached to the bootstrap stack's roles.
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        os.environ["AWS_ACCESS_KEY_ID"] = accounts.access_key(account)  # mock_aws restores it
        yield
