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
    """Teach moto, once and for the life of this process, everything that the embedded AWS adds to it."""
    from ultracluster.localaws import api, services

    importlib.import_module("ultracluster.localaws.handlers")
    accounts.activate()
    services.activate()
    api.install()


@contextlib.contextmanager
def local_aws(account: str = accounts.DEFAULT) -> Iterator[None]:
    """An empty embedded AWS: within it boto3 reaches that, with stack operations done when a call returns."""
    from moto import mock_aws

    from ultracluster.localaws import faults

    activate()
    faults.clear()
    # The bootstrap stack's roles carry AWS's managed policies.
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        os.environ["AWS_ACCESS_KEY_ID"] = accounts.access_key(account)  # which mock_aws puts back
        yield
