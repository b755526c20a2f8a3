"""Fixtures of the embedded AWS's tests."""

import gc
from collections.abc import Iterator
from datetime import date

import pytest
from moto import mock_aws

from handler_parts import Stack
from localaws import clock, local_aws
from localaws.resources import HANDLERS
from localaws.services import activate
from stack_parts import QUEUE, TOPIC, Fake, FakeQueue, FakeTopic, Stacks

TODAY = date(2026, 11, 20)
"""Date of the tests, which create clusters of versions that end."""

gc.freeze()  # what is imported stays: collections need not look at it again


@pytest.fixture(scope="session", autouse=True)
def today() -> Iterator[None]:
    """The date in this process; a server that a test starts has the date of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "today", lambda: TODAY)
        yield


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stacks]:
    """An empty embedded AWS in this process, with two fake resource types."""
    with local_aws():
        monkeypatch.setitem(HANDLERS, TOPIC, FakeTopic())
        monkeypatch.setitem(HANDLERS, QUEUE, FakeQueue())
        Fake.there.clear()
        Fake.calls.clear()
        yield Stacks()


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    """moto with the services of the embedded AWS: one state for the tests of a module."""
    activate()
    with mock_aws():
        yield


@pytest.fixture
def stack() -> Iterator[Stack]:
    """A stack of an empty account, whose handlers run in this process."""
    activate()
    with mock_aws():
        yield Stack()
