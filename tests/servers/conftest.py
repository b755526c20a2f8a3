"""One control plane for all tests of this folder, with the CRDs of every operator, Kueue and JobSet."""

from collections.abc import Iterator

import pytest
import yaml

from tests.kubernetes.environments import OPERATORS
from tests.kubernetes.fleet import fleet
from tests.kubernetes.schemas import crd_files
from tests.servers.api import Api
from tests.servers.control_plane import ControlPlane
from tests.servers.controllers import established, start_jobset, start_kueue
from tests.servers.folder import servers_folder
from ultracluster.kubernetes.operators import operator_values
from ultracluster.kubernetes.scheduler_charts import kueue_values

OWN = ("kueue.x-k8s.io", "jobset.x-k8s.io")
"""API groups whose CRDs come with their chart."""


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Servers that the tests of a run share. A test works in namespaces of its own, and cleans up what has none."""
    with ControlPlane(servers_folder(), tmp_path_factory.mktemp("control-plane")) as plane:
        _custom_kinds(plane.api)
        environment = fleet(jobs=list(OPERATORS))
        start_jobset(plane, operator_values(environment, "jobset"))
        # with claims counted, which changes nothing for pods without claims
        start_kueue(plane, kueue_values(fleet(jobs=list(OPERATORS), device_stack="dra")))
        yield plane


@pytest.fixture(scope="session")
def servers(control_plane: ControlPlane) -> Api:
    """The API server, asked by an administrator."""
    return control_plane.api


def _custom_kinds(api: Api) -> None:
    """CRDs of the operators and schedulers that do not run here: their objects are judged by schema and CEL."""
    definitions = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in crd_files()]
    wanted = [obj for obj in definitions if obj["spec"]["group"] not in OWN]
    for obj in wanted:
        # conversion asks a webhook of a controller that does not run here
        obj["spec"].pop("conversion", None)
        api.create(obj)
    established(api, wanted)
