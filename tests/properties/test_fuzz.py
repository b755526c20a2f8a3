"""3,000 mutated environment files: none raises, and what `ultracluster validate` accepts synthesises and deploys.

A sample is synthesised and deployed here; with ULTRACLUSTER_FUZZ=all, every accepted environment.
"""

import json
import os
import re

import pytest
from botocore.exceptions import ClientError

from localaws import accounts, local_aws
from tests.bad_files import FOLDER, VALID, reading_time
from tests.deployment.in_process import client, create, create_bucket, failures, prepare
from tests.properties.mutator import mutated_files
from tests.properties.test_config import assert_complete
from tests.synthesis import FILES, synthesise
from ultracluster.catalog.regions import GRAFANA_REGIONS
from ultracluster.config.environment import Environment
from ultracluster.config.loader import validate

SEED, COUNT = 8, 3000
SYNTHESISED = 40
"""Accepted environments that are synthesised, evenly chosen: each takes half a second."""
DEPLOYED = 4
"""Accepted environments that are deployed: each takes six seconds."""
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


def create_named(environment: Environment) -> None:
    """Create what the file names as existing: the permissions boundary and buckets."""
    if environment.permissions_boundary:
        name = environment.permissions_boundary.rpartition("/")[2]
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        client(environment, "iam").create_policy(PolicyName=name, PolicyDocument=json.dumps(document))
    for bucket in environment.storage.buckets.values():
        if bucket.existing:
            create_bucket(environment, bucket.existing)


def refusals(environment: Environment) -> dict[str, str]:
    """Deploys an environment up to the first stack that fails. Returns the reasons by logical id."""
    parts = synthesise(environment)
    with local_aws(environment.account or accounts.DEFAULT):
        prepare(environment, parts)
        create_named(environment)
        for part, template in parts.items():
            try:
                status = create(environment, part, template)
            except ClientError as error:
                return {part: str(error)}
            if status != "CREATE_COMPLETE":
                return failures(environment, part) or {part: status}
    return {}


def deployable(environment: Environment) -> bool:
    """Whether the embedded AWS can have what the file names: no VPC that exists, and services of the Region."""
    warned = environment.observability.grafana.auth != "none" and environment.region not in GRAFANA_REGIONS
    own = environment.account in (None, *re.findall(r"::(\d{12}):", environment.permissions_boundary or ""))
    return environment.network.create is not None and not warned and own


def test_accepted_environments_deploy(accepted):
    for environment in sample([each for each in accepted if deployable(each)], DEPLOYED):
        assert refusals(environment) == {}, environment
