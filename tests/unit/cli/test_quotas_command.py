"""`ultracluster quotas`: what an environment uses up of each service quota."""

import json

import pytest
from typer.testing import CliRunner

from tests.bad_files import file_of
from tests.synthesis import FILES
from ultracluster.cli import app
from ultracluster.cli.needs import quota_needs
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load


def needs(name, change=lambda data: None):
    data = load(FILES[name]).model_dump(mode="json", exclude_unset=True)
    change(data)
    return {need.quota.name: need.needed for need in quota_needs(Environment.model_validate(data))}


def test_markets_have_quotas_of_their_own_and_login_nodes_count():
    found = needs("slurm-whole-fleet")
    assert found["All Standard Spot Instance Requests"] == 20 * 192
    assert found["Running On-Demand G and VT instances"] == 4 * 48
    assert found["Running On-Demand Standard instances"] == 16


def test_capacity_blocks_need_no_vcpus_and_reservations_those_of_on_demand():
    def bought(**purchase):
        def change(data):
            data["node_groups"][0]["purchase"] = purchase

        return needs("prod", change).get("Running On-Demand P instances", 0)

    nodes = load(FILES["prod"]).node_groups[0]
    whole = nodes.max_count * nodes.hardware.vcpus
    block = {"type": "capacity_block", "reservation_id": "cr-0123456789abcdef0"}
    assert bought(**block) == 0
    assert bought(type="reservation", reservation_id="cr-0123456789abcdef0") == whole


def test_an_update_of_eks_launches_one_more_of_each_kind():
    environment = load(FILES["staging"])
    plane = environment.control_plane
    assert needs("staging")["Running On-Demand Standard instances"] == 8 * (plane.system_nodes.count + 1) + 16 * (
        plane.cpu_nodes.count + 1
    )


def test_pools_of_karpenter_count_at_their_limits_in_every_market():
    pool = {"name": "eval", "instance_types": ["g6e.12xlarge", "g6e.48xlarge"], "purchase": ["on_demand", "spot"]}

    def change(data):
        data["control_plane"]["karpenter"] = {"pools": [{**pool, "limits": {"gpus": 16}}]}

    without, found = needs("staging"), needs("staging", change)
    assert found["Running On-Demand G and VT instances"] == found["All G and VT Spot Instance Requests"] == 2 * 192
    assert found["Network interfaces per Region"] == without["Network interfaces per Region"] + 4
    default = needs("staging", lambda data: data["control_plane"].update(karpenter=True))
    assert default["Running On-Demand Standard instances"] == without["Running On-Demand Standard instances"] + 512
    assert default["Running On-Demand G and VT instances"] == 16 * 24


def test_root_volumes_and_interfaces_are_those_of_the_launch_templates():
    environment = load(FILES["prod"])
    (group,) = environment.node_groups
    plane = environment.control_plane
    interfaces = group.max_count * len(group.layout("pcs")) + plane.login.count
    assert needs("prod")["Network interfaces per Region"] == interfaces
    gib = group.max_count * group.root_volume_gib + plane.login.count * plane.login.root_volume_gib
    assert needs("prod")["Storage for gp3 volumes"] == -(-gib // 1024)


def test_file_systems_count_if_they_are_new():
    more = [
        {"type": "efs", "name": "tools", "mount_path": "/tools"},
        {"type": "openzfs", "name": "ref", "mount_path": "/ref", "existing": "fs-0123456789abcdef0"},
    ]

    def change(data):
        data["storage"]["home"] = {"type": "openzfs", "capacity_gib": 512, "throughput_mbps": 320}
        data["storage"]["more"] = more

    found = needs("dev", change)
    assert found["OpenZFS file systems"] == found["File systems per account"] == 1
    assert (found["OpenZFS SSD storage capacity"], found["OpenZFS throughput capacity"]) == (512, 320)


def test_without_metrics_no_workspace_is_needed():
    name = "Workspaces per Region"
    assert needs("dev")[name] == 1
    none = {"metrics": "none", "auto_repair": False}
    assert name not in needs("dev", lambda data: data.update(observability=none))


@pytest.mark.parametrize("name", FILES)
def test_every_shipped_file_has_a_table_and_the_same_as_json(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    table = CliRunner().invoke(app, ["quotas", str(FILES[name])])
    listed = CliRunner().invoke(app, ["quotas", str(FILES[name]), "--json"])
    assert (table.exit_code, listed.exit_code) == (0, 0)
    assert "…" not in table.stdout
    for entry in json.loads(listed.stdout):
        star = " *" if entry["needed"] > entry["default"] else ""
        (line,) = (
            line for line in table.stdout.splitlines() if entry["name"] in line and f"{entry['default']:,}" in line
        )
        assert f"{entry['needed']:,}{star}" in line


def test_a_refused_file_is_reported():
    done = CliRunner().invoke(app, ["quotas", str(file_of("gpu-without-driver"))])
    assert done.exit_code == 1
    assert "gpu-without-driver" in done.stderr
