"""Picture of an environment on EKS: docs/architecture-eks.svg, from environments/staging.yaml."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from scripts.architecture.drawing import TIMES, arrow, box, frame, label, svg
from scripts.architecture.shared import WIDTH, Source, beside, header, nodes, storage
from ultracluster.kubernetes.scrape import MONITORING

NODES = ("compute-train", "compute-cpu")
METRICS = ("observability", "collection", "alerts", "grafana")
PARTS = ("network", "storage", "links", "control-plane", *NODES, "platform", *METRICS)
SOURCE = Source("staging", PARTS)
HEIGHT = 1140
RELEASE, OBJECTS = "Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource"


def picture() -> str:
    """Return the SVG."""
    body = [
        *header(SOURCE),
        *network(),
        *control_plane(),
        *in_the_cluster(),
        *compute(),
        *storage(SOURCE, 992, "mounted by pods of each team"),
        *beside(SOURCE, "Flows, Kubernetes, file system;"),
        *access(),
    ]
    return svg("The stacks of environments/staging.yaml and what they create", WIDTH, HEIGHT, SOURCE.parts, body)


def network() -> Iterator[str]:
    """VPC, subnets, endpoints and NAT gateways."""
    subnets = {resource.logical_id: resource.properties for resource in SOURCE.found("AWS::EC2::Subnet", "network")}

    def blocks(word: str) -> list[str]:
        return [subnet["CidrBlock"] for name, subnet in subnets.items() if word in name]

    (node,) = (subnet for name, subnet in subnets.items() if "Nodes" in name)
    kinds = [resource.properties["VpcEndpointType"] for resource in SOURCE.found("AWS::EC2::VPCEndpoint", "network")]
    gateways = len(SOURCE.found("AWS::EC2::NatGateway", "network"))
    vpc = SOURCE.one("AWS::EC2::VPC", "network")["CidrBlock"]
    yield frame("network", 40, 150, 860, 960, f"VPC {vpc}", kind="AWS::EC2::VPC")
    control = f"{len(blocks('ControlPlane'))} control-plane subnets, {' and '.join(blocks('ControlPlane'))}"
    yield frame("network", 60, 190, 568, 254, control, kind="AWS::EC2::Subnet")
    title = f"{kinds.count('Interface')} interface endpoints"
    lines = ("Reach AWS APIs, EKS among", "them, without the internet")
    yield box("network", 352, 228, 260, 92, title, *lines, kind="AWS::EC2::VPCEndpoint")
    yield frame("network", 640, 190, 244, 130, f"{len(blocks('Public'))} public subnets", kind="AWS::EC2::Subnet")
    title = f"{gateways} NAT gateway" + ("s" if gateways > 1 else "")
    yield box("network", 656, 228, 212, 76, title, "Outbound only", kind="AWS::EC2::NatGateway")
    texts = ("Buckets of this account,", f"and of AWS in {SOURCE.region}")
    yield box(
        "network", 640, 336, 244, 108, "S3 endpoint", *texts[: 2 * kinds.count("Gateway")], kind="AWS::EC2::VPCEndpoint"
    )
    title = f"Node subnet {node['CidrBlock']} in {node['AvailabilityZone']}"
    yield frame("network", 60, 730, 824, 364, title, kind="AWS::EC2::Subnet", at_bottom=True)


def control_plane() -> Iterator[str]:
    """The EKS cluster, and the system nodes and the kubectl function in its subnets."""
    cluster = SOURCE.one("AWS::EKS::Cluster", "control-plane")
    reach = "Public" if cluster["ResourcesVpcConfig"]["EndpointPublicAccess"] else "Private"
    tier = cluster["ControlPlaneScalingConfig"]["Tier"]
    lines = (f"Kubernetes {cluster['Version']}, run by AWS", f"{reach} endpoint, tier {tier}")
    yield box("control-plane", 76, 228, 260, 92, "EKS cluster", *lines, kind="AWS::EKS::Cluster")
    system = SOURCE.one("AWS::EKS::Nodegroup", "platform")
    count = f"{system['ScalingConfig']['DesiredSize']} {TIMES} {system['InstanceTypes'][0]}"
    lines = (count, "Run add-ons and controllers")
    yield box("platform", 76, 336, 260, 92, "System nodes", *lines, kind="AWS::EKS::Nodegroup")
    lines = ("Lambda function with Helm and", "kubectl; installs in order")
    yield box("platform", 352, 336, 260, 92, "Kubectl provider", *lines, kind="AWS::Lambda::Function")


def in_the_cluster() -> Iterator[str]:
    """Add-ons, Helm releases, and the queue of each team."""
    title = "In the cluster"
    yield frame("platform", 60, 474, 824, 226, title, kind=OBJECTS, dashed=True)
    addons = [found.properties["AddonName"] for found in SOURCE.found("AWS::EKS::Addon")]
    lines = textwrap.wrap(", ".join(addons), 39, break_on_hyphens=False)
    yield box("platform", 76, 512, 284, 172, f"{len(addons)} EKS add-ons", *lines, kind="AWS::EKS::Addon")
    releases = [found.properties for found in SOURCE.found(RELEASE, "platform")]
    named = [release["Release"] for release in releases if release["Namespace"] != MONITORING]
    text = f"{', '.join(named)}; {len(releases) - len(named)} for metrics and logs"
    lines = textwrap.wrap(text, 27, break_on_hyphens=False)
    yield box("platform", 376, 512, 236, 172, f"{len(releases)} Helm releases", *lines, kind=RELEASE)
    for number, queue in enumerate(queues()):
        name = f"Team {queue['metadata']['name']}"
        yield box("platform", 628, 512 + 92 * number, 240, 80, name, share(queue), kind=OBJECTS)
    yield arrow("M 206 429 L 206 510") + label(218, 464, "run", "small")
    yield arrow("M 482 429 L 482 510") + label(494, 464, "install", "small")


def queues() -> list[dict[str, Any]]:
    """Return the ClusterQueue objects in the templates."""
    sets = [found.properties["Manifest"] for found in SOURCE.found(OBJECTS, "platform")]
    objects = [item for text in sets if isinstance(text, str) for item in json.loads(text)]
    return [item for item in objects if item["kind"] == "ClusterQueue"]


def share(queue: dict[str, Any]) -> str:
    """Describe a team's quota."""
    (group,) = queue["spec"]["resourceGroups"]
    flavor = group["flavors"][-1]  # after that of the CPU nodes
    (gpus,) = (resource for resource in flavor["resources"] if resource["name"] == "nvidia.com/gpu")
    owned = f"{gpus['nominalQuota']} GPUs"
    return f"{owned}, no borrowing" if gpus.get("borrowingLimit") == 0 else f"{owned}, may borrow"


def compute() -> Iterator[str]:
    """The accelerated nodes, their node group and their role."""
    group = SOURCE.one("AWS::EKS::Nodegroup", SOURCE.compute)
    version, _, released = group["ReleaseVersion"].rpartition("-")
    lines = ("AL2023 with NVIDIA driver,", f"{version}, release {released};", "node auto repair by XID")
    yield box(SOURCE.compute, 76, 748, 232, 100, "Node group train", *lines, kind="AWS::EKS::Nodegroup")
    cpu = SOURCE.one("AWS::EKS::Nodegroup", "compute-cpu")
    count = f"{cpu['ScalingConfig']['DesiredSize']} {TIMES} {cpu['InstanceTypes'][0]}, no GPUs"
    yield box("compute-cpu", 76, 856, 232, 60, "CPU nodes", count, kind="AWS::EKS::Nodegroup")
    yield box("control-plane", 76, 924, 232, 60, "Node role", "Joins, pulls images", kind="AWS::IAM::Role")
    title = "EFA security group: all traffic between members, both ways"
    yield frame("network", 324, 764, 540, 194, title, kind="AWS::EC2::SecurityGroup", dashed=True)
    boot = "First boot reserves huge pages and stripes the local NVMe disks"
    yield from nodes(SOURCE, 340, 802, group["ScalingConfig"]["MaxSize"], boot)
    yield arrow("M 748 685 L 748 762") + label(760, 720, "jobs", "small")
    yield arrow("M 309 820 L 338 820")


def access() -> Iterator[str]:
    """Access entries, and the IAM roles of teams."""
    entries = SOURCE.found("AWS::EKS::AccessEntry", "platform")
    admins = sum("AccessPolicies" in found.properties for found in entries)
    title = f"{len(entries)} access entries"
    lines = (f"{admins} administrators, kubectl role", f"included; {len(entries) - admins} for team members")
    yield box("platform", 964, 588, 276, 92, title, *lines, kind="AWS::EKS::AccessEntry")
    every = f"Reads the cluster every {SOURCE.file.observability.scrape_interval_seconds} s"
    yield box("collection", 964, 692, 276, 60, "AMP scraper", every, kind="AWS::APS::Scraper")
    associations = [
        found
        for found in SOURCE.found("AWS::EKS::PodIdentityAssociation", "platform")
        if found.properties["Namespace"] != MONITORING
    ]
    lines = ("Pods of a team read the buckets", "and write below teams/TEAM/")
    title = f"{len(associations)} team roles"
    yield box("platform", 964, 764, 276, 92, title, *lines, kind="AWS::EKS::PodIdentityAssociation")
    yield arrow("M 1102 857 L 1102 934")
