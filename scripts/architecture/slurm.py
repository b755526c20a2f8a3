"""Picture of an environment on PCS: docs/architecture.svg, from environments/prod.yaml."""

from collections.abc import Iterator

from scripts.architecture.drawing import TIMES, arrow, box, frame, label, svg
from scripts.architecture.shared import WIDTH, Source, beside, header, nodes, storage

METRICS = ("observability", "alerts", "grafana")
SOURCE = Source("prod", ("network", "storage", "links", "control-plane", "compute", *METRICS))
HEIGHT = 890


def picture() -> str:
    """Return the SVG."""
    path = SOURCE.file.storage.lustre.mount_path if SOURCE.file.storage.lustre else ""
    body = [
        *header(SOURCE),
        *network(),
        *control_plane(),
        *compute(),
        *storage(SOURCE, 742, f"mounted at {path}"),
        *beside(SOURCE, "Flows, scheduler, nodes, jobs;"),
    ]
    return svg("The stacks of environments/prod.yaml and what they create", WIDTH, HEIGHT, SOURCE.parts, body)


def network() -> Iterator[str]:
    """VPC, subnets, endpoints and NAT gateways."""
    subnets = {resource.logical_id: resource.properties for resource in SOURCE.found("AWS::EC2::Subnet", "network")}

    def blocks(word: str) -> list[str]:
        return [subnet["CidrBlock"] for name, subnet in subnets.items() if word in name]

    (node,) = (subnet for name, subnet in subnets.items() if "Nodes" in name)
    kinds = [resource.properties["VpcEndpointType"] for resource in SOURCE.found("AWS::EC2::VPCEndpoint", "network")]
    gateways = len(SOURCE.found("AWS::EC2::NatGateway", "network"))
    vpc = SOURCE.one("AWS::EC2::VPC", "network")["CidrBlock"]
    yield frame("network", 40, 150, 860, 710, f"VPC {vpc}", kind="AWS::EC2::VPC")
    control = f"{len(blocks('ControlPlane'))} control-plane subnets, {' and '.join(blocks('ControlPlane'))}"
    yield frame("network", 60, 190, 484, 170, control, kind="AWS::EC2::Subnet")
    title = f"{kinds.count('Interface')} interface endpoints"
    lines = ("Reach AWS APIs, PCS", "among them, without", "the internet")
    yield box("network", 76, 228, 212, 112, title, *lines, kind="AWS::EC2::VPCEndpoint")
    yield frame("network", 556, 190, 176, 170, f"{len(blocks('Public'))} public subnets", kind="AWS::EC2::Subnet")
    lines = ("Outbound only; no", "other public IP", "addresses")
    yield box("network", 568, 228, 152, 112, f"{gateways} NAT gateways", *lines, kind="AWS::EC2::NatGateway")
    texts = ("Buckets of this", "account, and", "AWS's own in", SOURCE.region)
    yield box(
        "network", 744, 190, 140, 170, "S3 endpoint", *texts[: 4 * kinds.count("Gateway")], kind="AWS::EC2::VPCEndpoint"
    )
    title = f"Node subnet {node['CidrBlock']} in {node['AvailabilityZone']}"
    yield frame("network", 60, 380, 824, 464, title, kind="AWS::EC2::Subnet", at_bottom=True)


def control_plane() -> Iterator[str]:
    """The PCS cluster."""
    cluster = SOURCE.one("AWS::PCS::Cluster", "control-plane")
    history = {"STANDARD": "Slurm accounting on", "NONE": "Slurm accounting off"}
    lines = (
        f"Slurm {cluster['Scheduler']['Version']}, run by AWS",
        f"Size {cluster['Size'].lower()}",
        history[cluster["SlurmConfiguration"]["Accounting"]["Mode"]],
    )
    yield box("control-plane", 316, 228, 212, 112, "PCS cluster", *lines, kind="AWS::PCS::Cluster")


def compute() -> Iterator[str]:
    """Login nodes, queue, node role and accelerated nodes."""
    login = SOURCE.one("AWS::PCS::ComputeNodeGroup", "compute", "Login")
    group = SOURCE.one("AWS::PCS::ComputeNodeGroup", "compute", "train")
    queue, role = SOURCE.one("AWS::PCS::Queue", "compute"), SOURCE.one("AWS::IAM::Role", "control-plane")
    count = login["ScalingConfiguration"]["MinInstanceCount"]
    lines = (f"{count} {TIMES} {login['InstanceConfigs'][0]['InstanceType']}", "Through Session Manager")
    yield box("compute", 76, 414, 220, 92, "Login nodes", *lines, kind="AWS::PCS::ComputeNodeGroup")
    yield box("compute", 76, 526, 220, 72, f"Queue {queue['Name']}", "A Slurm partition", kind="AWS::PCS::Queue")
    rights = (f"Path {role['Path']}; registers", "with PCS, uses the buckets")
    yield box("control-plane", 76, 618, 220, 92, "Node role", *rights, kind="AWS::IAM::Role")
    title = "EFA security group: all traffic between members, both ways"
    yield frame("network", 324, 414, 540, 294, title, kind="AWS::EC2::SecurityGroup", dashed=True)
    boot = "Each boot mounts Lustre and the striped local NVMe disks"
    yield from nodes(SOURCE, 340, 452, group["ScalingConfiguration"]["MaxInstanceCount"], boot)
    lines = ("Prometheus agent: GPUs, node, EFA, Lustre, jobs", "CloudWatch agent: logs of nodes, output of jobs")
    yield box("compute", 340, 608, 508, 84, "Agents on each node", *lines, kind="AWS::PCS::ComputeNodeGroup")
    yield arrow("M 246 413 C 246 372 330 386 350 342") + label(236, 402, "sbatch", "small", "end")
    yield arrow("M 470 341 L 470 412") + label(482, 401, "starts and stops nodes", "small")
    yield arrow("M 297 562 L 338 562")
