"""Fixtures of the embedded AWS's tests."""

import gc
from collections.abc import Iterator

import pytest
from moto import mock_aws

from handler_parts import Stack
from localaws import local_aws
from localaws.resources import HANDLERS
from localaws.services import activate
from stack_parts import QUEUE, TOPIC, Fake, FakeQueue, FakeTopic, Stacks

gc.freeze()  # what is imported stays: collections need not look at it again


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
