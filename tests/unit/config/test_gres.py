"""Records of gres.conf of a node group, and the setting Gres beside them."""

import pytest

from ultracluster.config.gres import gres_problems, layout_problems

EIGHT = {"Name": "gpu", "Type": "h100", "File": "/dev/nvidia[0-7]"}


def found(records, gres=None):
    settings = {} if gres is None else {"Gres": gres}
    return [(problem.code, problem.field) for problem in gres_problems(records, settings)]


@pytest.mark.parametrize(
    ("records", "gres"),
    [
        ([], None),
        ([EIGHT], None),
        ([EIGHT], "gpu:h100:8"),
        ([EIGHT], "gpu:0"),
        ([{**EIGHT, "Type": "h100", "File": "/dev/nvidia[0-3,5],/dev/nvidia[6-7]"}], "gpu:7"),
        ([{"Name": "gpu", "MultipleFiles": "/dev/nvidia0,/dev/nvidia1"}], "gpu:2"),
        # Slurm counts the devices that it detects when the node boots, as with MIG
        ([{"AutoDetect": "nvml"}], "gpu:3g.20gb:8,gpu:1g.5gb:16"),
        # shared resources are not counted
        ([EIGHT, {"Name": "mps", "Count": 100}], "gpu:h100:8,mps:400"),
        ([{"Name": "license", "Count": "2K"}], "license:2048(S:0)"),
        ([{"Name": "local"}], "local"),
    ],
)
def test_records_and_gres_that_pcs_takes(records, gres):
    assert found(records, gres) == []


@pytest.mark.parametrize(
    ("records", "gres"),
    [
        ([], "gpu:0"),
        ([EIGHT], "gpu:h100:9"),
        ([EIGHT], "gpu:a100:8"),
        ([EIGHT], "gpu:h100:8,mps:400"),
        ([{"Name": "license", "Count": "2K"}], "license:2049"),
        ([{"Name": "local"}], "local:2"),
        ([EIGHT, {"Type": "h100", "Name": "mps"}], "shard:1"),
    ],
)
def test_gres_that_pcs_refuses_with_the_records(records, gres):
    assert found(records, gres) == [("slurm-gres", "slurm_settings.Gres")]


@pytest.mark.parametrize(
    ("records", "at"),
    [
        ([{}], "gres_settings[0]"),
        ([{"AutoDetect": "off"}], "gres_settings[0]"),
        ([{"Name": "gpu", "Count": 8}], "gres_settings[0]"),
        ([EIGHT, EIGHT], "gres_settings[1]"),
    ],
)
def test_records_that_pcs_refuses(records, at):
    assert found(records) == [("slurm-gres", at)]


@pytest.mark.parametrize(
    ("records", "settings", "problems"),
    [
        ([EIGHT], {"Sockets": 2, "Parameters": "numa_node_as_socket"}, []),
        ([{**EIGHT, "Count": 8}, {"Name": "mps", "Count": 400, "File": "/dev/nvidia0"}], {}, []),
        ([{"AutoDetect": "nvml"}], {}, []),
        ([{**EIGHT, "Count": 4}], {}, ["gres_settings[0].Count"]),
        ([{**EIGHT, "File": "/dev/nvidia[0-8]"}], {}, ["gres_settings[0]"]),
        ([], {"Sockets": 5}, ["slurm_settings.Sockets"]),
        ([], {"Sockets": "0"}, ["slurm_settings.Sockets"]),
        ([], {"Parameters": "l3cache_as_socket"}, ["slurm_settings.Parameters"]),
    ],
)
def test_records_and_sockets_are_those_of_the_nodes(records, settings, problems):
    assert [each.field for each in layout_problems(records, settings, gpus=8, cores=96)] == problems
