"""Parts of both pictures: the legend, nodes, file system and buckets, observability, logs and keys."""

import textwrap
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from scripts.architecture.drawing import TIMES, arrow, box, label
from tests.synthesis import FILES, templates
from ultracluster.catalog import catalog
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load

RULES = "AWS::APS::RuleGroupsNamespace"
WIDTH = 1280
COUNTS = {7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


class Resource(NamedTuple):
    """A resource of the templates."""

    part: str
    logical_id: str
    properties: dict[str, Any]


class Source:
    """The synthesised templates of the shipped environment `name`, and its file."""

    def __init__(self, name: str, parts: Sequence[str]) -> None:
        self.name, self.parts = name, tuple(parts)

    @cached_property
    def file(self) -> Environment:
        """The environment file, loaded."""
        return load(FILES[self.name])

    @property
    def region(self) -> str:
        """Region of the environment."""
        return str(self.file.region)

    def found(self, kind: str, part: str | None = None) -> list[Resource]:
        """Return resources of a type, in one stack or in all. Raises KeyError if there is none."""
        resources = [
            Resource(place, logical_id, resource.get("Properties", {}))
            for place, template in templates(self.name).items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == kind and part in (place, None)
        ]
        if not resources:
            raise KeyError(f"no {kind} in {part or 'any stack'}")
        return resources

    @property
    def compute(self) -> str:
        """The stack of the node group `train`: the only one with nodes on PCS, one of several on EKS."""
        return next(part for part in self.parts if part.startswith("compute"))

    def one(self, kind: str, part: str, holding: str = "") -> dict[str, Any]:
        """Return the properties of the only resource of a type whose logical id contains `holding`."""
        (resource,) = (resource for resource in self.found(kind, part) if holding in resource.logical_id)
        return resource.properties


def header(source: Source) -> Iterator[str]:
    """Title, and the legend with the colour and the resource count of each stack."""
    stacks = templates(source.name)
    yield label(40, 52, f"One environment file becomes {COUNTS[len(stacks)]} stacks", "head1")
    where = f"environments/{source.name}.yaml in {source.region}; stack names: {source.name}-network and so on"
    yield label(40, 80, where, "line")
    widths = [22 + max(8 * len(part), 78) for part in source.parts]
    gap = (WIDTH - 80 - sum(widths)) / len(widths)
    for number, part in enumerate(source.parts):
        x, count = 40 + round(sum(widths[:number]) + number * gap), len(stacks[part]["Resources"])
        yield f'<g data-stack="{part}"><rect class="bar {part}" x="{x}" y="99" width="14" height="14" rx="3"/>'
        yield label(x + 22, 111, part, "legend") + label(x + 22, 129, f"{count} resources", "small") + "</g>"


def launch_template(source: Source) -> dict[str, Any]:
    """Return the LaunchTemplateData of the accelerated nodes."""
    data: dict[str, Any] = source.one("AWS::EC2::LaunchTemplate", source.compute, "train")["LaunchTemplateData"]
    return data


def nodes(source: Source, x: int, y: int, count: int, boot: str) -> Iterator[str]:
    """Box of the accelerated nodes, with one small rectangle per node."""
    template = launch_template(source)
    hardware = catalog[template["InstanceType"]]
    efa = sum(interface["InterfaceType"].startswith("efa") for interface in template["NetworkInterfaces"])
    lines = (
        f"{efa} EFA interfaces per node, {hardware.efa.gb_per_s:g} GB/s each way",
        f"Launched into a {template['InstanceMarketOptions']['MarketType'].replace('-', ' ').title()}",
        boot,
    )
    title = f"{count} {TIMES} {hardware.name}: {count * hardware.gpu_count} {hardware.gpu.model} GPUs"
    yield box(source.compute, x, y, 508, 140, title, *lines, kind="AWS::EC2::LaunchTemplate")
    step = min(29.5, 472 / count)
    for number in range(count):
        place = f'x="{x + 18 + number * step:.1f}" y="{y + 112}"'
        yield f'<rect class="node" {place} width="{step - 5:.1f}" height="14" rx="3"/>'


def _homes(source: Source) -> str:
    """Words about the file system of homes; none without one."""
    kinds = {"openzfs": "FSx for OpenZFS", "efs": "EFS"}
    return f", and homes on {kinds[source.file.storage.home.type]}" if source.file.storage.home else ""


def storage(source: Source, y: int, mounted: str) -> Iterator[str]:
    """File system at height `y`, its linked buckets, and the direction of each link."""
    systems = [each.properties for each in source.found("AWS::FSx::FileSystem", "storage")]
    (lustre,) = (each for each in systems if each["FileSystemType"] == "LUSTRE")
    settings = lustre["LustreConfiguration"]
    wire = "over EFA" if settings.get("EfaEnabled") else "over TCP"
    size = f"{lustre['StorageCapacity']:,} GiB at {settings['PerUnitStorageThroughput']} MB/s per TiB, {wire}; retained"
    yield box("storage", 340, y, 508, 70, f"FSx for Lustre{_homes(source)}", size, kind="AWS::FSx::FileSystem")
    yield arrow(f"M 594 {y - 48} L 594 {y - 2}", both=True) + label(606, y - 11, mounted, "small")
    for link in source.found("AWS::FSx::DataRepositoryAssociation", "links"):
        name, exports = link.properties["FileSystemPath"].strip("/"), "AutoExportPolicy" in link.properties["S3"]
        at = y + 66 if exports else y - 20
        lines = ("Encrypted, versioned, retained",)
        yield box("storage", 964, at - 36, 276, 72, f"Bucket {name}", *lines, kind="AWS::S3::Bucket")
        inside = y + 46 if exports else y + 22
        way = f"M 850 {inside} C 900 {inside} 910 {at} 962 {at}" if exports else ""
        way = way or f"M 962 {at} C 910 {at} 900 {inside} 851 {inside}"
        yield arrow(way, part="links") + label(
            932, at + (21 if exports else -12), "exports" if exports else "imports", "small", "middle"
        )


def beside(source: Source, logged: str) -> Iterator[str]:
    """Boxes next to the VPC: Grafana, Prometheus, log groups and KMS keys."""
    workspace = source.one("AWS::APS::Workspace", "observability")
    grafana = source.one("AWS::Grafana::Workspace", "grafana")
    sign_in = {"AWS_SSO": "IAM Identity Center", "SAML": "SAML"}[grafana["AuthenticationProviders"][0]]
    lines = (f"Version {grafana['GrafanaVersion']}", f"Sign-in with {sign_in}")
    yield box("grafana", 964, 150, 276, 92, "Managed Grafana", *lines, kind="AWS::Grafana::Workspace")
    yield arrow("M 1102 243 L 1102 282") + label(1114, 267, "may only query", "small")
    days, files = workspace["WorkspaceConfiguration"]["RetentionPeriodInDays"], source.found(RULES, "alerts")
    alerts = sum(rule.properties["Data"].count("alert: ") for rule in files)
    holds = f"{days} days of metrics; {alerts} alerts"
    yield box("observability", 964, 284, 276, 72, "Managed Prometheus", holds, kind="AWS::APS::Workspace")
    groups, keys = source.found("AWS::Logs::LogGroup"), source.found("AWS::KMS::Key")
    yield box("shared", 964, 376, 276, 92, f"{len(groups)} log groups", logged, "encrypted and retained")
    owners = [part for part in source.parts if part in {key.part for key in keys}]
    yield box("shared", 964, 488, 276, 84, f"{len(keys)} KMS keys", *textwrap.wrap(", ".join(owners), 32))
