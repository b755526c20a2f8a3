"""Tests without a process of their own read files at the date of the refused files: versions end over time."""

from collections.abc import Iterator

import pytest

from tests.bad_files import reading_time


@pytest.fixture(autouse=True)
def date_of_the_files() -> Iterator[None]:
    """The clock of the refused files."""
    with reading_time():
        yield
