"""docs/security.md, held against the synthesised policies, volumes and rules."""

import json
import re
from fnmatch import fnmatchcase
from functools import cache

import pytest

from tests.synthesis import FILES, ROOT, synthesise
from ultracluster.config.loader import load

PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
ENVIRONMENTS = {"EKS": "staging", "PCS": "prod"}
TEAM, OTHER = "pretrain", "research"
NOTHING = "—"
ACTIONS = {"read": "s3:GetObject", "write": "s3:PutObject", "delete": "s3:DeleteObject"}
ROLES = {
    "pods of a team, service account `default`": f"Pods of team {TEAM}",
    "nodes, and pods that take the role of their node": "Nodes of an EKS cluster",
    "FSx CSI driver": "FSx CSI driver",
    "VPC CNI": "Pods of vpc-cni",
    "EBS CSI driver": "EBS CSI driver",
    "kubectl provider": "Helm and kubectl of a cluster",
    "jobs and login sessions, with the role of jobs": "Jobs of a PCS cluster",
    "root on nodes, with the role of the node": "Nodes of a PCS cluster",
    "Fluent Bit": "Fluent Bit",
    "AMP scraper": "AMP scraper of a cluster",
    "role with which the AMP scraper writes metrics": "Metrics of an AMP scraper",
    "function that drains Slurm nodes on alerts": "Drains Slurm nodes on alerts",
    "Managed Grafana": "Grafana queries the metrics of the cluster",
}
"""Descriptions of the actors' roles."""


def table(heading, number=0):
    """Rows of a table of a section, each by the titles of its columns."""
    section = re.split(r"(?m)^## ", PAGE)
    (found,) = [text for text in section if text.startswith(f"{heading}\n")]
    tables = re.findall(r"(?m)(?:^\|.*\n)+", found)
    head, _, *rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in tables[number].splitlines()]
    assert rows
    return [dict(zip(head, row, strict=True)) for row in rows]


def cases(heading, number=0):
    """Rows of a table for each control plane that the row names."""
    return [
        pytest.param(row, ENVIRONMENTS[plane], id=f"{next(iter(row.values()))[:40]}-{plane}")
        for row in table(heading, number)
        for plane in row["on"].split(", ")
    ]


class Stacks:
    """The templates of an environment, with references between stacks resolved to `stack.LogicalId.Attribute`."""

    def __init__(self, name):
        environment = load(FILES[name])
        if environment.control_plane.type == "pcs":
            # the page lists what a file may ask for, too
            draining = environment.observability.model_copy(update={"auto_repair": True})
            environment = environment.model_copy(update={"observability": draining})
        self.parts = synthesise(environment)
        self.exports = {
            output["Export"]["Name"]: self.text(output["Value"], part)
            for part, template in self.parts.items()
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }

    def of(self, kind):
        """Resources of a type: stack, logical id and properties."""
        return [
            (part, name, resource.get("Properties", {}))
            for part, template in self.parts.items()
            for name, resource in template["Resources"].items()
            if resource["Type"] == kind
        ]

    def text(self, value, part):
        match value:
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(self.text(each, part) for each in parts)
            case {"Ref": str(name)}:
                return name.removeprefix("AWS::") if name.startswith("AWS::") else f"{part}.{name}"
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return f"{part}.{name}.{attribute}"
            case {"Fn::ImportValue": str(name)}:
                return self.exports[name]
        return value if isinstance(value, str) else json.dumps(value)

    def role(self, description):
        """Stack and logical id of the role with a description."""
        (found,) = [
            (part, name) for part, name, it in self.of("AWS::IAM::Role") if it.get("Description") == description
        ]
        return found

    def statements(self, description):
        """Statements of all policies of a role that the stacks write; AWS's own policies are not among them."""
        part, name = self.role(description)
        role = self.parts[part]["Resources"][name]["Properties"]
        documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
        for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
            for owner, _, policy in self.of(kind):
                attached = {self.text(each, owner) for each in policy.get("Roles", [])}
                if attached & {f"{part}.{name}"}:
                    documents.append(self.document(policy["PolicyDocument"], owner))
        return [statement for document in documents for statement in document["Statement"]]

    def document(self, document, part):
        statements = []
        for statement in document["Statement"]:
            resources = statement.get("Resource", [])
            listed = resources if isinstance(resources, list) else [resources]
            statements.append({**statement, "Resource": [self.text(each, part) for each in listed]})
        return {"Statement": statements}


@cache
def stacks(name):
    return Stacks(name)


def allowed(statements, action, resource, *, through=None):
    """Whether identity policies allow a call: some statement allows it and none denies it."""
    effects = set()
    for statement in statements:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        if not any(fnmatchcase(action, pattern) for pattern in actions):
            continue
        if not any(fnmatchcase(resource, pattern) for pattern in statement["Resource"]):
            continue
        service = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService")
        if service is None or through:
            effects.add(statement["Effect"])
    return effects == {"Allow"}


def bucket_arns(environment):
    """ARNs of the created buckets of the file, as `stack.LogicalId.Arn`."""
    found = [
        f"{part}.{name}.Arn"
        for part, name, _ in stacks(environment).of("AWS::S3::Bucket")
        if not name.startswith("AccessLogs")
    ]
    assert len(found) == 2
    return found


def verbs(cell):
    return set() if cell == NOTHING else set(cell.split(", "))


@pytest.mark.parametrize(("row", "environment"), cases("Data in buckets"))
def test_actors_do_with_objects_what_the_page_says(row, environment):
    keys = {
        "`teams/TEAM/` of its own team": f"teams/{TEAM}/model",
        "`teams/TEAM/` of another team": f"teams/{OTHER}/model",
        "the rest of the bucket": "images/1",
    }
    statements = stacks(environment).statements(ROLES[row["actor"]])
    assert statements or row["actor"] in ("VPC CNI", "EBS CSI driver", "AMP scraper")
    for column, key in keys.items():
        for arn in bucket_arns(environment):
            can = {verb for verb, action in ACTIONS.items() if allowed(statements, action, f"{arn}/{key}")}
            assert can == verbs(row[column]), column


def test_every_role_of_pods_and_nodes_is_in_the_table():
    """A new role appears here first."""
    elsewhere = {
        "Control plane of a cluster",
        "Delivers flow logs",
        "Serves Custom::ClosedDefaultSecurityGroup",
        "Serves Custom::GrafanaContent",
        "Serves Custom::GrafanaUsers",
        f"Pods of team {OTHER}",
        None,
    }
    rows = {ROLES[row["actor"]] for row in table("Data in buckets")}
    for environment in ENVIRONMENTS.values():
        found = {role.get("Description") for _, _, role in stacks(environment).of("AWS::IAM::Role")}
        assert found - elsewhere <= rows
    named = {row["actor"] for row in table("Data in buckets")}
    assert named == set(ROLES)


def test_pods_take_no_role_of_buckets_by_another_service_account():
    """Only the service account `default` of each team's namespace has an association with a role of buckets."""
    for _, _, association in stacks("staging").of("AWS::EKS::PodIdentityAssociation"):
        account = (association["Namespace"], association["ServiceAccount"])
        # the role of Fluent Bit is an actor of the page, without access to buckets
        assert account in {(TEAM, "default"), (OTHER, "default"), ("monitoring", "fluent-bit")}


@cache
def mounts():
    """Namespace, folder and whether it is read-only, of every volume of the file system."""
    found = []
    for part, _, resource in stacks("staging").of("Custom::AWSCDK-EKS-KubernetesResource"):
        for item in json.loads(stacks("staging").text(resource["Manifest"], part)):
            if item["kind"] == "PersistentVolume" and item["spec"].get("csi", {}).get("driver") == "fsx.csi.aws.com":
                source = item["spec"]["csi"]
                _, _, folder = source["volumeAttributes"]["mountname"].partition("/")
                found.append((item["spec"]["claimRef"]["namespace"], folder, "ro" in item["spec"]["mountOptions"]))
                assert item["spec"]["claimRef"]["name"], "only this claim can bind"
    return found


@pytest.mark.parametrize("row", table("Folders of the file system"), ids=lambda row: row["namespace of the pod"])
def test_pods_reach_the_folders_that_the_page_says(row):
    namespace = {"of a team": TEAM}.get(row["namespace of the pod"], row["namespace of the pod"].strip("`"))
    for column, cell in list(row.items())[1:]:
        own = TEAM if "own team" in column else OTHER
        folder = "" if column == "the root folder" else column.split("`")[1].replace("TEAM", own)
        reached = [
            read_only
            for owner, mounted, read_only in mounts()
            if owner == namespace and (not mounted or f"{folder}/".startswith(f"{mounted}/"))
        ]
        can = ({"read"} if reached else set()) | ({"write"} if False in reached else set())
        assert can == verbs(cell), column


def test_members_of_a_team_create_no_volumes():
    writing = {"create", "update", "patch", "*"}
    for part, _, resource in stacks("staging").of("Custom::AWSCDK-EKS-KubernetesResource"):
        for item in json.loads(stacks("staging").text(resource["Manifest"], part)):
            if item["kind"] in ("Role", "ClusterRole") and item["metadata"]["name"] in ("team-member", "fleet-view"):
                for rule in item["rules"]:
                    volumes = {"persistentvolumes", "*"} & set(rule["resources"])
                    assert not volumes or not writing & set(rule["verbs"])
            if item["kind"] == "Namespace" and item["metadata"]["name"] in (TEAM, OTHER):
                assert item["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"


PRINCIPALS = {
    "CloudWatch Logs": {"Service": "logs.Region.amazonaws.com"},
    "the service-linked role of FSx for S3 links": {"AWS": "*"},
    "Managed Prometheus": {"Service": "aps.amazonaws.com"},
    "CloudWatch alarms": {"Service": "cloudwatch.amazonaws.com"},
}
ALERTING = ("aps.amazonaws.com", "cloudwatch.amazonaws.com")


@pytest.mark.parametrize("plane", ENVIRONMENTS)
def test_key_policies_name_the_principals_of_the_page_and_no_others(plane):
    environment = ENVIRONMENTS[plane]
    listed = [row for row in table("Keys") if plane in row["on"].split(", ")]
    rows = {(row["key of"].strip("`").removeprefix("NAME-"), row["principal"]) for row in listed}
    found = set()
    for part, _, key in stacks(environment).of("AWS::KMS::Key"):
        account, *others = key["KeyPolicy"]["Statement"]
        assert stacks(environment).text(account["Principal"]["AWS"], part) == "arn:Partition:iam::AccountId:root"
        for statement in others:
            ((kind, value),) = statement["Principal"].items()
            principal = {kind: stacks(environment).text(value, part)}
            (name,) = [name for name, known in PRINCIPALS.items() if known == principal]
            found.add((part, name))
            condition = json.dumps(statement["Condition"])
            if value in ALERTING:
                # AMP is not documented to name its workspace to KMS
                keys = {"aws:SourceAccount"} | ({"aws:SourceArn"} if value.startswith("cloudwatch.") else set())
                assert keys == {key for each in statement["Condition"].values() for key in each}
                continue
            assert "kms:EncryptionContext:" in condition
            if value == "*":
                assert {"kms:CallerAccount", "kms:ViaService"} <= set(statement["Condition"]["StringEquals"])
                assert "aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/" in condition
    assert found == rows


@pytest.mark.parametrize(("row", "environment"), cases("Keys", 1))
def test_roles_use_keys_through_s3_only(row, environment):
    statements = stacks(environment).statements(ROLES[row["actor"]])
    ((part, name, _),) = [found for found in stacks(environment).of("AWS::KMS::Key") if found[0] == "storage"]
    arn = f"{part}.{name}.Arn"
    can = {
        "`kms:Decrypt` through S3": allowed(statements, "kms:Decrypt", arn, through="s3"),
        "`kms:Decrypt` directly": allowed(statements, "kms:Decrypt", arn),
    }
    for column, yes in can.items():
        assert row[column] == ("yes" if yes else "no"), column


GROUPS = {
    "nodes": {"ClusterGroup", "EfaGroup"},
    "file system": {"FileSystemAccess"},
    "interface endpoints": {"Endpoints"},
    "Slurm controller, and with `rest_api: true` its REST API": {"ClusterGroup"},
}
SOURCES = {
    "nodes, login nodes and the control plane": {"ClusterGroup", "EfaGroup", "FileSystemAccess"},
    "nodes and login nodes": {"ClusterGroup", "EfaGroup", "FileSystemAccess"},
    "nodes, login nodes and the control plane; on EKS the AMP scraper too, on the ports of exporters": {
        *("ClusterGroup", "EfaGroup", "FileSystemAccess", "ScraperAccess"),
    },
}
"""Security groups of the members. File servers answer their clients, so their group is a source too."""


def groups_in(text):
    return {name for names in (*GROUPS.values(), *SOURCES.values()) for name in names if name in text}


@pytest.mark.parametrize(("row", "environment"), cases("Network"))
def test_targets_are_reachable_from_where_the_page_says(row, environment):
    found = stacks(environment)
    if row["target"] == "Kubernetes API server":
        ((_, _, cluster),) = found.of("AWS::EKS::Cluster")
        access = cluster["ResourcesVpcConfig"]
        assert (access["EndpointPublicAccess"], access["EndpointPrivateAccess"]) == (False, True)
    elif row["target"] == "instance metadata":
        hops = {
            template["LaunchTemplateData"]["MetadataOptions"]["HttpPutResponseHopLimit"]
            for _, _, template in found.of("AWS::EC2::LaunchTemplate")
        }
        assert hops == {1}
        if row["on"] == "PCS":
            scripts = str(found.of("AWS::PCS::ComputeNodeGroup")).count("'separate-users'")
            assert scripts == len(found.of("AWS::PCS::ComputeNodeGroup"))
    else:
        if row["on"] == "PCS":
            ((part, _, cluster),) = found.of("AWS::PCS::Cluster")
            attached = cluster["Networking"]["SecurityGroupIds"]
            assert groups_in(str([found.text(group, part) for group in attached])) == GROUPS[row["target"]]
        rules = found.of("AWS::EC2::SecurityGroupIngress")
        targets = [
            rule for part, _, rule in rules if groups_in(str(found.text(rule["GroupId"], part))) & GROUPS[row["target"]]
        ]
        assert targets
        for part, _, rule in rules:
            if groups_in(str(found.text(rule["GroupId"], part))) & GROUPS[row["target"]]:
                source = str(found.text(rule["SourceSecurityGroupId"], part))
                assert groups_in(source)
                assert groups_in(source) <= SOURCES[row["reachable from"]]


@pytest.mark.parametrize("environment", ENVIRONMENTS.values())
def test_no_rule_allows_an_address_in_and_no_node_has_a_public_address(environment):
    found = stacks(environment)
    for _, name, rule in found.of("AWS::EC2::SecurityGroupIngress"):
        assert not {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & rule.keys(), name
    for _, name, group in found.of("AWS::EC2::SecurityGroup"):
        assert not group.get("SecurityGroupIngress"), name
    for _, name, template in found.of("AWS::EC2::LaunchTemplate"):
        for interface in template["LaunchTemplateData"].get("NetworkInterfaces", []):
            assert not interface.get("AssociatePublicIpAddress"), name


@pytest.mark.parametrize(
    ("statement", "action", "resource", "through", "expected"),
    [
        ({"Effect": "Allow", "Action": "s3:*", "Resource": ["b/*"]}, "s3:PutObject", "b/k", None, True),
        ({"Effect": "Allow", "Action": ["s3:Get*"], "Resource": ["b/*"]}, "s3:PutObject", "b/k", None, False),
        (
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": ["b/teams/a/*"]},
            "s3:GetObject",
            "b/k",
            None,
            False,
        ),
        ({"Effect": "Deny", "Action": "*", "Resource": ["*"]}, "s3:GetObject", "b/k", None, False),
    ],
)
def test_the_judge_of_policies(statement, action, resource, through, expected):
    assert allowed([statement], action, resource, through=through) is expected
    denied = {"Effect": "Deny", "Action": "s3:*", "Resource": ["b/*"]}
    assert not allowed([statement, denied], action, resource, through=through)
