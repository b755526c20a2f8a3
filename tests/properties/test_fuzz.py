"""3,000 mutated environment files: none raises, and what `ultracluster validate` accepts synthesises.

A sample is synthesised here; with ULTRACLUSTER_FUZZ=all, every accepted environment.
"""

import os

import pytest

from tests.bad_files import FOLDER, VALID, reading_time
from tests.properties.mutator import mutated_files
from tests.properties.test_config import assert_complete
from tests.synthesis import FILES, synthesise
from ultracluster.config.environment import Environment
from ultracluster.config.loader import validate

SEED, COUNT = 8, 3000
SYNTHESISED = 40
"""Accepted environments that are synthesised, evenly chosen: each takes half a second."""
SOURCES = [file.read_text("utf-8") for file in (*FILES.values(), *(FOLDER / name for name in VALID))]


@pytest.fixture(scope="module", autouse=True)
def _reading_time():
    with reading_time():
        yield


@pytest.fixture(scope="module")
def accepted(tmp_path_factory) -> list[Environment]:
    """Environments that validation accepts, each once."""
    file, found = tmp_path_factory.mktemp("fuzz") / "environment.yaml", dict[str, Environment]()
    for text in mutated_files(SOURCES, seed=SEED, count=COUNT):
        file.write_text(text, "utf-8")
        reading = validate(file)
        assert_complete(reading, text)
        if reading.environment:
            found.setdefault(reading.environment.model_dump_json(), reading.environment)
    return list(found.values())


def sample(found: list[Environment], count: int) -> list[Environment]:
    return found if os.environ.get("ULTRACLUSTER_FUZZ") == "all" else found[:: max(len(found) // count, 1)]


def test_no_mutated_file_raises_and_many_are_accepted(accepted):
    """Findings of each are complete (asserted while reading). Too few accepted files would test little below."""
    assert COUNT // 10 < len(accepted) < COUNT // 2


def test_mutations_are_the_same_each_time():
    first, second = (list(mutated_files(SOURCES, seed=SEED, count=20)) for _ in range(2))
    assert first == second
    assert len(set(first)) == 20


def test_accepted_environments_synthesise(accepted):
    for environment in sample(accepted, SYNTHESISED):
        templates = synthesise(environment)
        assert all(template["Resources"] for template in templates.values()), environment
