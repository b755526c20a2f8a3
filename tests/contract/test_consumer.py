"""Someone else's CDK app: it installs the wheel, uses two constructs, and needs nothing of this checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.synthesis import ROOT

APP = ROOT / "examples" / "consumer"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"}


def run(*command, cwd, **variables):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**CLEAN, "CDK_VALIDATION": "false", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout, built from a copy, without a network."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "infra", source / "infra", ignore=shutil.ignore_patterns("__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    run(
        uv, "build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--no-config",
        "--python", sys.executable, "--out-dir", source / "dist",
        cwd=source, UV_CACHE_DIR=str(source / "cache"),
    )  # fmt: skip
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A fresh virtual environment with the wheel in it, which borrows our dependencies but not this project."""
    folder = tmp_path_factory.mktemp("consumer") / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(
        uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-config", "--python", python, wheel,
        cwd=folder, UV_CACHE_DIR=str(folder / "cache"),
    )  # fmt: skip
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # a plain path, unlike a site directory, has its own .pth files left alone: ours of the editable install among them
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def template(python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(APP / "app.py", folder)
    context = json.loads((APP / "cdk.json").read_text())["context"]
    run(python, "app.py", cwd=folder, CDK_OUTDIR=str(folder / "out"), CDK_CONTEXT_JSON=json.dumps(context))
    return json.loads((folder / "out" / "research.template.json").read_text())


def of_type(template, kind):
    return [resource for resource in template["Resources"].values() if resource["Type"] == kind]


def test_the_package_comes_from_the_wheel(python, tmp_path):
    where = run(python, "-c", "import ultracluster; print(ultracluster.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(python.parent.parent)


def test_the_wheel_has_its_data_files_and_types(python, tmp_path):
    code = "from importlib.resources import files; print((files('ultracluster') / 'py.typed').is_file())"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "True"
    command = python.with_name("ultracluster")
    types = json.loads(run(command, "catalog", "--json", cwd=tmp_path))["instance_types"]
    assert "p6-b300.48xlarge" in {entry["name"] for entry in types}


def test_the_app_is_short():
    assert len((APP / "app.py").read_text().splitlines()) < 25


def test_the_file_system_has_efa_and_is_retained(template):
    (file_system,) = of_type(template, "AWS::FSx::FileSystem")
    assert file_system["Properties"]["StorageCapacity"] == 4800
    assert file_system["Properties"]["LustreConfiguration"]["EfaEnabled"] is True
    assert file_system["DeletionPolicy"] == file_system["UpdateReplacePolicy"] == "Retain"


def test_the_file_system_lies_in_the_node_subnet(template):
    (file_system,) = of_type(template, "AWS::FSx::FileSystem")
    (subnet,) = file_system["Properties"]["SubnetIds"]
    assert template["Resources"][subnet["Ref"]]["Properties"]["AvailabilityZone"] == "us-east-2b"


def test_the_efa_clients_and_the_file_system_reach_each_other_by_group(template):
    everything = [
        (
            rule["Properties"]["GroupId"]["Fn::GetAtt"][0],
            rule["Properties"]["DestinationSecurityGroupId"]["Fn::GetAtt"][0],
        )
        for rule in of_type(template, "AWS::EC2::SecurityGroupEgress")
        if rule["Properties"]["IpProtocol"] == "-1" and "DestinationSecurityGroupId" in rule["Properties"]
    ]
    (server,) = {a for a, b in everything if a == b and a.startswith("Scratch")}
    (client,) = {a for a, b in everything if b == server and a != server}
    assert (server, client) in everything
    assert client.startswith("NetworkEfaGroup")


def test_the_vpc_has_private_ways_to_aws(template):
    assert len(of_type(template, "AWS::EC2::VPC")) == 1
    assert {endpoint["Properties"]["VpcEndpointType"] for endpoint in of_type(template, "AWS::EC2::VPCEndpoint")} == {
        "Gateway",
        "Interface",
    }
