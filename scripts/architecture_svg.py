"""Draws docs/architecture.svg from the synthesised templates of environments/prod.yaml: `make docs`.

Every figure in the picture is read from the templates; what they no longer hold stops the drawing with a KeyError.
Colours follow the reader's light or dark setting, on a background of the picture's own.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from infra.catalog import catalog
from infra.config.loader import load
from tests.synthesis import FILES, ROOT, templates

WIDTH, HEIGHT = 1280, 790
SVG = ROOT / "docs" / "architecture.svg"
FILE = load(FILES["prod"])
COUNTS = {5: "five", 6: "six", 7: "seven"}
TIMES = "\N{MULTIPLICATION SIGN}"
PARTS = ("network", "storage", "links", "control-plane", "compute", "observability")

# text on the picture's background, then for each part: fill, line
LIGHT = {
    "paper": ("#ffffff", "#d0d7de"),
    "text": ("#1f2328", "#57606a"),
    "network": ("#e7f0fd", "#2563c9"),
    "storage": ("#e5f6ec", "#157f45"),
    "links": ("#e0f5f7", "#0b7683"),
    "control-plane": ("#fdf1dc", "#a86200"),
    "compute": ("#efe9fd", "#6a3fc8"),
    "observability": ("#fde9f0", "#b92c63"),
    "shared": ("#f3f4f6", "#6e7781"),
}
DARK = {
    "paper": ("#0d1117", "#30363d"),
    "text": ("#e6edf3", "#9da7b3"),
    "network": ("#11243f", "#6aa6f8"),
    "storage": ("#0f2d1d", "#56c786"),
    "links": ("#0c2c31", "#4bbfcc"),
    "control-plane": ("#33240b", "#e3a74a"),
    "compute": ("#261b47", "#b196f5"),
    "observability": ("#3a1525", "#f285ab"),
    "shared": ("#1b2028", "#8b949e"),
}


class Resource(NamedTuple):
    """A resource of the templates."""

    part: str
    logical_id: str
    properties: dict[str, Any]


def found(kind: str, part: str | None = None) -> list[Resource]:
    """Resources of a type, in one part or in all. Raises KeyError when there is none."""
    resources = [
        Resource(place, logical_id, resource.get("Properties", {}))
        for place, template in templates("prod").items()
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == kind and part in (place, None)
    ]
    if not resources:
        raise KeyError(f"no {kind} in {part or 'any stack'}")
    return resources


def one(kind: str, part: str, holding: str = "") -> dict[str, Any]:
    """Properties of the only such resource whose logical id holds a word."""
    (resource,) = (resource for resource in found(kind, part) if holding in resource.logical_id)
    return resource.properties


# drawing -------------------------------------------------------------------------------------------------------------


def label(x: float, y: float, text: str, style: str = "line", anchor: str = "start") -> str:
    """One line of text."""
    return f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def box(part: str, x: int, y: int, width: int, height: int, title: str, *lines: str, kind: str = "") -> str:
    """A thing: its name, what is worth knowing of it, and as data which resource type of which stack it is."""
    data = f' data-stack="{part}" data-type="{kind}"' if kind else ""
    shape = f'<rect class="box {part}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    bar = f'<rect class="bar {part}" x="{x}" y="{y + 10}" width="4" height="{height - 20}" rx="2"/>'
    texts = [label(x + 18, y + 28, title, "name")]
    texts += [label(x + 18, y + 50 + 20 * number, line) for number, line in enumerate(lines)]
    return f"<g{data}>{shape}{bar}{''.join(texts)}</g>"


def frame(
    part: str,
    x: int,
    y: int,
    width: int,
    height: int,
    title: str,
    *,
    kind: str,
    dashed: bool = False,
    at_bottom: bool = False,
) -> str:
    """Something that holds other things; its title stands at the top left, or at the bottom left."""
    style = "frame dashed" if dashed else "frame"
    baseline = y + height - 12 if at_bottom else y + 25
    shape = f'<rect class="{style} {part}" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
    return f'<g data-stack="{part}" data-type="{kind}">{shape}{label(x + 16, baseline, title, f"title {part}")}</g>'


def head(part: str) -> str:
    """The tip of an arrow."""
    shape = f'<path class="bar {part}" d="M0 1 L10 5 L0 9 z"/>'
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
    return f'<marker id="{part}" {size} orient="auto-start-reverse">{shape}</marker>'


def arrow(path: str, *, both: bool = False, part: str = "shared") -> str:
    """A line with a head at its end, or at both."""
    start = f' marker-start="url(#{part})"' if both else ""
    return f'<path class="arrow {part}" d="{path}" marker-end="url(#{part})"{start}/>'


# the picture ---------------------------------------------------------------------------------------------------------


def picture() -> str:
    """The whole SVG."""
    body = "\n".join([*header(), *network(), *control_plane(), *compute(), *storage(), *around()])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>The stacks of environments/prod.yaml and what they create</title>
<style>
{style()}
</style>
<defs>{head("shared")}{head("links")}</defs>
<rect class="paper" x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="14"/>
{body}
</svg>
"""


def header() -> Iterator[str]:
    """What this is, and the colours of the stacks."""
    yield label(40, 52, f"One environment file becomes {COUNTS[len(templates('prod'))]} stacks", "head1")
    yield label(40, 80, f"environments/prod.yaml, {region()}", "line")
    x = 40
    for part in PARTS:
        count = len(templates("prod")[part]["Resources"])
        yield f'<g data-stack="{part}"><rect class="bar {part}" x="{x}" y="99" width="14" height="14" rx="3"/>'
        yield label(x + 22, 111, f"prod-{part}", "legend") + label(x + 22, 129, f"{count} resources", "small") + "</g>"
        x += 202


def nodes() -> str:
    """The accelerated nodes in words."""
    template = launch_template()
    count = one("AWS::PCS::ComputeNodeGroup", "compute", "train")["ScalingConfiguration"]["MaxInstanceCount"]
    hardware = catalog[template["InstanceType"]]
    return f"{count} {TIMES} {hardware.name}: {count * hardware.gpu_count} {hardware.gpu.model} GPUs"


def launch_template() -> dict[str, Any]:
    """What the launch template of the accelerated nodes says."""
    data: dict[str, Any] = one("AWS::EC2::LaunchTemplate", "compute", "train")["LaunchTemplateData"]
    return data


def network() -> Iterator[str]:
    """VPC, subnets and ways out."""
    subnets = {resource.logical_id: resource.properties for resource in found("AWS::EC2::Subnet", "network")}

    def blocks(word: str) -> list[str]:
        return [subnet["CidrBlock"] for name, subnet in subnets.items() if word in name]

    (node,) = (subnet for name, subnet in subnets.items() if "Nodes" in name)
    kinds = [resource.properties["VpcEndpointType"] for resource in found("AWS::EC2::VPCEndpoint", "network")]
    gateways = len(found("AWS::EC2::NatGateway", "network"))
    vpc = one("AWS::EC2::VPC", "network")["CidrBlock"]
    yield frame("network", 40, 150, 860, 610, f"VPC {vpc}", kind="AWS::EC2::VPC")
    control = f"{len(blocks('ControlPlane'))} control-plane subnets, {' and '.join(blocks('ControlPlane'))}"
    yield frame("network", 60, 190, 484, 170, control, kind="AWS::EC2::Subnet")
    title, lines = (
        f"{kinds.count('Interface')} interface endpoints",
        ("AWS's APIs, PCS's among", "them, reached without", "the internet"),
    )
    yield box("network", 76, 228, 212, 112, title, *lines, kind="AWS::EC2::VPCEndpoint")
    yield frame("network", 556, 190, 176, 170, f"{len(blocks('Public'))} public subnets", kind="AWS::EC2::Subnet")
    lines = ("The only way out;", "nothing else here", "has an address")
    yield box("network", 568, 228, 152, 112, f"{gateways} NAT gateways", *lines, kind="AWS::EC2::NatGateway")
    texts = ("Buckets of this", "account, and of", "AWS itself in", region())
    yield box(
        "network", 744, 190, 140, 170, "S3 endpoint", *texts[: 4 * kinds.count("Gateway")], kind="AWS::EC2::VPCEndpoint"
    )
    title = f"Node subnet {node['CidrBlock']} in {node['AvailabilityZone']}"
    yield frame("network", 60, 380, 824, 364, title, kind="AWS::EC2::Subnet", at_bottom=True)


def region() -> str:
    """Where the environment is deployed."""
    return str(FILE.region)


def control_plane() -> Iterator[str]:
    """PCS's controller."""
    cluster = one("AWS::PCS::Cluster", "control-plane")
    history = {"STANDARD": "Job history is kept", "NONE": "No job history"}
    lines = (
        f"Slurm {cluster['Scheduler']['Version']}, run by AWS",
        f"Size {cluster['Size'].lower()}",
        history[cluster["SlurmConfiguration"]["Accounting"]["Mode"]],
    )
    yield box("control-plane", 316, 228, 212, 112, "PCS cluster", *lines, kind="AWS::PCS::Cluster")


def compute() -> Iterator[str]:
    """Login nodes, queue, accelerated nodes."""
    login = one("AWS::PCS::ComputeNodeGroup", "compute", "Login")
    group = one("AWS::PCS::ComputeNodeGroup", "compute", "train")
    queue, role, template = one("AWS::PCS::Queue", "compute"), one("AWS::IAM::Role", "control-plane"), launch_template()
    count = login["ScalingConfiguration"]["MinInstanceCount"]
    lines = (f"{count} {TIMES} {login['InstanceConfigs'][0]['InstanceType']}", "Through Session Manager")
    yield box("compute", 76, 414, 220, 92, "Login nodes", *lines, kind="AWS::PCS::ComputeNodeGroup")
    yield box("compute", 76, 526, 220, 72, f"Queue {queue['Name']}", "A partition of Slurm", kind="AWS::PCS::Queue")
    rights = (f"Under {role['Path']}, registers", "nodes and uses the buckets")
    yield box("control-plane", 76, 618, 220, 92, "Role of the nodes", *rights, kind="AWS::IAM::Role")
    group_title = "EFA security group: all traffic among its members, both ways"
    yield frame("network", 324, 414, 540, 194, group_title, kind="AWS::EC2::SecurityGroup", dashed=True)
    efa = sum(interface["InterfaceType"].startswith("efa") for interface in template["NetworkInterfaces"])
    bandwidth = catalog[template["InstanceType"]].efa.gb_per_s
    market = template["InstanceMarketOptions"]["MarketType"].replace("-", " ")
    launch = (
        f"{efa} EFA interfaces a node, {bandwidth:g} GB/s each way",
        f"Launched into a {market}",
        "Mount Lustre and stripe the local NVMe at first boot",
    )
    yield box("compute", 340, 452, 508, 140, nodes(), *launch, kind="AWS::EC2::LaunchTemplate")
    columns = group["ScalingConfiguration"]["MaxInstanceCount"]
    step = min(29.5, 472 / columns)
    for number in range(columns):
        yield f'<rect class="node" x="{358 + number * step:.1f}" y="564" width="{step - 5:.1f}" height="14" rx="3"/>'
    yield arrow("M 246 413 C 246 372 330 386 350 342") + label(236, 402, "sbatch", "small", "end")
    yield arrow("M 470 341 L 470 412") + label(482, 401, "starts and stops nodes", "small")
    yield arrow("M 297 562 L 338 562")


def storage() -> Iterator[str]:
    """File system and buckets."""
    lustre = one("AWS::FSx::FileSystem", "storage")
    settings = lustre["LustreConfiguration"]
    wire = "over EFA" if settings.get("EfaEnabled") else "over TCP"
    path = FILE.storage.lustre.mount_path if FILE.storage.lustre else ""
    size = f"{lustre['StorageCapacity']:,} GiB at {settings['PerUnitStorageThroughput']} MB/s per TiB, {wire}; retained"
    yield box("storage", 340, 642, 508, 70, "FSx for Lustre", size, kind="AWS::FSx::FileSystem")
    yield arrow("M 594 594 L 594 640", both=True) + label(606, 631, f"mounted at {path}", "small")
    for link in found("AWS::FSx::DataRepositoryAssociation", "links"):
        name, exports = link.properties["FileSystemPath"].strip("/"), "AutoExportPolicy" in link.properties["S3"]
        y = 708 if exports else 622
        lines = ("Encrypted, versioned, retained",)
        yield box("storage", 964, y - 36, 276, 72, f"Bucket {name}", *lines, kind="AWS::S3::Bucket")
        way = f"M 850 688 C 900 688 910 {y} 962 {y}" if exports else f"M 962 {y} C 910 {y} 900 664 851 664"
        yield arrow(way, part="links") + label(
            932, y + (21 if exports else -12), "exports" if exports else "imports", "small", "middle"
        )


def around() -> Iterator[str]:
    """What stands beside the VPC."""
    workspace, grafana = one("AWS::APS::Workspace", "observability"), one("AWS::Grafana::Workspace", "observability")
    sign_in = {"AWS_SSO": "IAM Identity Center", "SAML": "SAML"}[grafana["AuthenticationProviders"][0]]
    lines = (f"Version {grafana['GrafanaVersion']}", f"Sign-in with {sign_in}")
    yield box("observability", 964, 150, 276, 92, "Managed Grafana", *lines, kind="AWS::Grafana::Workspace")
    yield arrow("M 1102 243 L 1102 282") + label(1114, 267, "may query, no more", "small")
    days = f"Metrics kept for {workspace['WorkspaceConfiguration']['RetentionPeriodInDays']} days"
    yield box("observability", 964, 284, 276, 72, "Managed Prometheus", days, kind="AWS::APS::Workspace")
    groups, keys = found("AWS::Logs::LogGroup"), found("AWS::KMS::Key")
    lines = ("Flows, scheduler, file system;", "encrypted, kept for a year")
    yield box("shared", 964, 376, 276, 92, f"{len(groups)} log groups", *lines)
    without = " and ".join(part for part in PARTS if part not in {key.part for key in keys})
    yield box("shared", 964, 488, 276, 72, f"{len(keys)} KMS keys", f"None for {without}")


def style() -> str:
    """Colours and type."""
    return f"""text {{ font-family: Inter, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; }}
.head1 {{ font-size: 26px; font-weight: 700; }}
.name {{ font-size: 16px; font-weight: 600; }}
.title {{ font-size: 14px; font-weight: 600; }}
.legend {{ font-size: 14px; font-weight: 600; }}
.line {{ font-size: 14px; }}
.small {{ font-size: 13px; }}
.box, .frame {{ stroke-width: 1.5; }}
.dashed {{ stroke-dasharray: 6 5; }}
.arrow {{ fill: none; stroke-width: 1.6; }}
{colours(LIGHT)}
@media (prefers-color-scheme: dark) {{
{colours(DARK)}
}}"""


def colours(palette: dict[str, tuple[str, str]]) -> str:
    """The rules that set colours."""
    paper, text = palette["paper"], palette["text"]
    rules = [
        f".paper {{ fill: {paper[0]}; stroke: {paper[1]}; }}",
        f".head1, .name, .legend {{ fill: {text[0]}; }}",
        f".line, .small {{ fill: {text[1]}; }}",
        ".frame { fill: none; }",
        f".node {{ fill: {palette['compute'][1]}; }}",
    ]
    for part in (*PARTS, "shared"):
        fill, line = palette[part]
        rules += [
            f".box.{part} {{ fill: {fill}; stroke: {line}; }}",
            f".bar.{part} {{ fill: {line}; }}",
            f".frame.{part} {{ stroke: {line}; }}",
            f".title.{part} {{ fill: {line}; }}",
            f".arrow.{part} {{ stroke: {line}; }}",
        ]
    return "\n".join(rules)


if __name__ == "__main__":
    SVG.write_text(picture(), "utf-8")
