"""The example CDK apps run with the wheel alone, without this checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.synthesis import ROOT

APP = ROOT / "examples" / "consumer"
ALONE = """
import importlib.util, json
import boto3
from localaws import local_aws
from localaws.records import records

assert importlib.util.find_spec("ultracluster") is None
template = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
with local_aws():
    cloudformation = boto3.client("cloudformation", region_name="us-east-1")
    cloudformation.create_stack(StackName="alone", TemplateBody=json.dumps(template))
    print(cloudformation.describe_stacks(StackName="alone")["Stacks"][0]["StackStatus"])
print(records("eks")["default"]["version"])
"""
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


def built(source, *folders):
    """The wheel of a folder of this checkout, built from a copy, without a network."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (folders[0].parent / name).exists():
            shutil.copy(folders[0].parent / name, source)
    for folder in folders:
        shutil.copytree(folder, source / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    run(
        uv, "build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--no-config",
        "--python", sys.executable, "--out-dir", source / "dist",
        cwd=source, UV_CACHE_DIR=str(source / "cache"),
    )  # fmt: skip
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


def installed(wheel, folder):
    """A new virtual environment with the wheel, and with our dependencies but not our editable installs."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(
        uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-config", "--python", python, wheel,
        cwd=folder, UV_CACHE_DIR=str(folder / "cache"),
    )  # fmt: skip
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # Python ignores .pth files in a path that a .pth file adds: ours of the editable install among them
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(tmp_path_factory.mktemp("source"), ROOT / "infra")


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    return installed(wheel, tmp_path_factory.mktemp("consumer") / "venv")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """The wheel of the embedded AWS."""
    return built(tmp_path_factory.mktemp("embedded"), ROOT / "localaws" / "src")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository that has an `infra` package of its own, as many CDK repositories do."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for app in APP.glob("*.py"):
        shutil.copy(app, folder)
    (folder / "infra").mkdir()
    (folder / "infra" / "__init__.py").write_text("OWN = True\n")
    return folder


def synthesised(python, repository, app):
    """The template of one of the apps, run in the repository."""
    context = json.loads((APP / "cdk.json").read_text())["context"]
    variables = {"CDK_OUTDIR": str(repository / app), "CDK_CONTEXT_JSON": json.dumps(context)}
    run(python, "-c", f"import infra, runpy; assert infra.OWN; runpy.run_path('{app}.py')", cwd=repository, **variables)
    return json.loads((repository / app / "research.template.json").read_text())


@pytest.fixture(scope="module")
def template(python, repository):
    return synthesised(python, repository, "app")


@pytest.fixture(scope="module")
def inside(python, repository):
    return synthesised(python, repository, "inside_vpc")


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


def test_neither_wheel_holds_anything_of_the_other(wheel, embedded):
    packages = {
        file: {name.split("/")[0] for name in zipfile.ZipFile(file).namelist() if ".dist-info/" not in name}
        for file in (wheel, embedded)
    }
    assert packages == {wheel: {"ultracluster"}, embedded: {"localaws"}}


def test_no_wheel_requires_one_of_ours(wheel, embedded):
    """A name that we have not registered is anybody's: pip would install a stranger's package."""
    ours, required = {"ultracluster", "localaws"}, set()
    for file in map(zipfile.ZipFile, (wheel, embedded)):
        (metadata,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        headers = message_from_bytes(file.read(metadata))
        ours.add(canonicalize_name(headers["Name"]))
        required |= {canonicalize_name(Requirement(each).name) for each in headers.get_all("Requires-Dist")}
    assert "ultracluster-localaws" in ours
    assert required > {"aws-cdk-lib", "moto"}
    assert ours.isdisjoint(required)


def test_the_embedded_aws_works_alone(embedded, tmp_path):
    python = installed(embedded, tmp_path / "venv")
    (tmp_path / "example.py").write_text(ALONE)
    assert run(python, "example.py", cwd=tmp_path).split() == ["CREATE_COMPLETE", "1.36"]
    run(python, "-m", "localaws", "up", "--folder", "aws", cwd=tmp_path)
    assert "has stopped" in run(python, "-m", "localaws", "down", "--folder", "aws", cwd=tmp_path)


@pytest.mark.parametrize("app", ["app.py", "inside_vpc.py"])
def test_the_app_has_fewer_than_25_lines(app):
    assert len((APP / app).read_text().splitlines()) < 25


def test_the_file_system_has_efa_and_is_retained(template):
    (file_system,) = of_type(template, "AWS::FSx::FileSystem")
    assert file_system["Properties"]["StorageCapacity"] == 4800
    assert file_system["Properties"]["LustreConfiguration"]["EfaEnabled"] is True
    assert (file_system["DeletionPolicy"], file_system["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_the_file_system_is_in_the_node_subnet(template):
    (file_system,) = of_type(template, "AWS::FSx::FileSystem")
    (subnet,) = file_system["Properties"]["SubnetIds"]
    assert template["Resources"][subnet["Ref"]]["Properties"]["AvailabilityZone"] == "us-east-2b"


def test_efa_clients_and_file_system_allow_each_other_all_traffic_by_group(template):
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


def test_the_vpc_has_endpoints_of_aws_services(template):
    assert len(of_type(template, "AWS::EC2::VPC")) == 1
    assert {endpoint["Properties"]["VpcEndpointType"] for endpoint in of_type(template, "AWS::EC2::VPCEndpoint")} == {
        "Gateway",
        "Interface",
    }


def test_the_file_system_uses_the_app_s_vpc_and_key(inside):
    (file_system,) = of_type(inside, "AWS::FSx::FileSystem")
    (subnet,) = file_system["Properties"]["SubnetIds"]
    (key,) = (name for name, found in inside["Resources"].items() if found["Type"] == "AWS::KMS::Key")
    assert subnet["Ref"].startswith("VpcPrivateSubnet1")
    assert file_system["Properties"]["KmsKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert len(of_type(inside, "AWS::EC2::VPC")) == 1


def test_the_app_s_security_group_may_mount_the_file_system(inside):
    nodes = {"Fn::GetAtt": [next(name for name in inside["Resources"] if name.startswith("Nodes")), "GroupId"]}
    ports = {
        (rule["Properties"]["FromPort"], rule["Properties"]["ToPort"])
        for rule in of_type(inside, "AWS::EC2::SecurityGroupIngress")
        if rule["Properties"]["SourceSecurityGroupId"] == nodes
    }
    assert ports == {(988, 988), (1018, 1023)}


def test_the_app_s_key_policy_allows_logs_and_links(inside):
    (key,) = of_type(inside, "AWS::KMS::Key")
    statements = json.dumps(key["Properties"]["KeyPolicy"])
    assert "AWSServiceRoleForFSxS3Access" in statements
    assert "log-group:/aws/fsx/lustre/research-*" in statements


def test_the_app_s_role_may_only_send_metrics(inside):
    policies = [found for found in of_type(inside, "AWS::IAM::Policy") if "Jobs" in str(found["Properties"]["Roles"])]
    (policy,) = policies
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "aps:RemoteWrite"
