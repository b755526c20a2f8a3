"""The whole environment file, and the rules between its sections."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from ultracluster.catalog import addresses
from ultracluster.catalog.regions import PARTITIONS
from ultracluster.config import effect_rules as rules
from ultracluster.config import node_effects
from ultracluster.config.access import Access, Host, access_problems
from ultracluster.config.administration import administration_problems
from ultracluster.config.boot_steps import Nodes, boot_step_problems
from ultracluster.config.bucket_names import environment_name_problems
from ultracluster.config.cpu_nodes import unlisted_type
from ultracluster.config.effects import IN_PLACE, NEW_FLEET, NEW_SECTION, NOTHING
from ultracluster.config.eks import POD_ADDRESSES, Eks
from ultracluster.config.eks_fleet import eks_problems
from ultracluster.config.fields import ZONE_DUMMIES, Many, PolicyArn, cdk_value, from_cdk, kind_of, text
from ultracluster.config.file_systems import OpenZfs
from ultracluster.config.fleet import Fleet
from ultracluster.config.group_zones import pool_types_in_zone, room_of_pools, types_in_zones, zone_problems
from ultracluster.config.health import Health, health_problems
from ultracluster.config.karpenter import KarpenterPool
from ultracluster.config.network import Network, is_zone_id, subnet_plan, wide_enough, zone_subnet_problems
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.observability import SCRAPER_INTERVAL_SECONDS, Observability
from ultracluster.config.pcs import Pcs
from ultracluster.config.pcs_fleet import pcs_problems
from ultracluster.config.place import Arn, arn_problems, control_plane_zone_problems, region_problems, service_problems
from ultracluster.config.problems import Path, Problem, repeated_names, rule
from ultracluster.config.reservations import reservation_problems
from ultracluster.config.settings import Settings
from ultracluster.config.slurm_team_rules import slurm_team_problems
from ultracluster.config.storage import Storage
from ultracluster.config.storage_place import file_system_problems
from ultracluster.config.tags import Tags, tag_problems

LOCAL_ZONE = re.compile(r"-[a-z]{3}-\d[a-z]$")


class Environment(Settings):
    """One cluster with its network, storage and observability. `name` is the prefix of its stack names."""

    schema_version: Annotated[Literal[1], NOTHING]
    """Version of the file format."""
    name: Annotated[
        str,
        text(
            r"^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$",
            "a name of up to 20 lower-case letters, digits and hyphens that starts with a letter and ends without a "
            "hyphen",
        ),
        rules.ENVIRONMENT,
    ]
    """Name of the environment, the prefix of its stack names."""
    account: Annotated[
        Annotated[str, text(r"^\d{12}$", "twelve digits such as 111122223333")] | None, rules.ACCOUNT
    ] = None
    """AWS account, in quotes. Without it, the templates work in any account."""
    region: Annotated[str, text(r"^[a-z]{2,4}(-[a-z]+)+-\d$", "a Region such as us-east-2"), rules.PLACE]
    """AWS Region."""
    availability_zone: Annotated[str, cdk_value(ZONE_DUMMIES), rules.PLACE]
    """Availability Zone or Local Zone of the nodes and the file system: the zone of your capacity."""
    tags: Annotated[Tags, IN_PLACE] = Field(default_factory=dict)
    """Tags of all resources of the stacks, without instances and their volumes. A change replaces no node."""
    node_tags: Annotated[Tags, NEW_FLEET] = Field(default_factory=dict)
    """More tags of all instances and their volumes. A change replaces every node."""
    permissions_boundary: Annotated[PolicyArn | None, IN_PLACE] = None
    """Permissions boundary of all IAM roles."""
    protect: Annotated[bool, IN_PLACE] = False
    """Termination protection of the stacks with data, and deletion protection of an EKS cluster. Set it after the first
    deployment: the CDK CLI cannot retry a protected deployment that failed. Data is retained either way."""
    retain: Annotated[bool, rules.RETAIN] = True
    """Whether data, logs, keys and the network stay when the stacks are deleted. false is for environments that are
    thrown away: deleting their stacks deletes everything that they made, with all versions of objects. Whatever the
    file names as existing stays."""
    network: Annotated[Network, NEW_SECTION]
    """A new or an existing VPC."""
    storage: Annotated[Storage, NEW_SECTION] = Storage()
    """Buckets, homes and file systems."""
    node_groups: Annotated[Many[NodeGroup], Field(min_length=1), node_effects.NODE_GROUPS]
    """The fleet: groups of nodes with GPUs, and of CPU nodes."""
    control_plane: Annotated[
        Annotated[Pcs, Tag("<pcs>")] | Annotated[Eks, Tag("<eks>")], Discriminator(kind_of), rules.KIND
    ]
    """The scheduler of jobs: AWS PCS (Slurm) or Amazon EKS (Kubernetes)."""
    access: Annotated[Access, NEW_SECTION] = Access()
    """How people reach the Kubernetes API or the login nodes."""
    observability: Annotated[Observability, NEW_SECTION] = Observability()
    """Metrics, dashboards, alerts, logs and repair."""
    health: Annotated[Health, NEW_SECTION] = Health()
    """Checks of nodes before and between jobs, and spare nodes."""

    @property
    def further_zones(self) -> tuple[str, ...]:
        """Zones of node groups and of Karpenter's pools beside availability_zone."""
        lists = (*(group.zones for group in self.node_groups), *(pool.zones for pool in self.pools))
        zones = dict.fromkeys(zone for each in lists for zone in each)
        return tuple(zone for zone in zones if zone != self.availability_zone)

    @property
    def pools(self) -> tuple[KarpenterPool, ...]:
        """Karpenter's pools of the file; none on PCS."""
        return self.control_plane.pools if isinstance(self.control_plane, Eks) else ()

    @property
    def in_local_zone(self) -> bool:
        """Whether the nodes and the file system are in a Local Zone."""
        return bool(LOCAL_ZONE.search(self.availability_zone))

    @property
    def boot_groups(self) -> Nodes:
        """Node groups, and the login nodes of PCS, by their paths in the file."""
        groups: Nodes = {("node_groups", i): group for i, group in enumerate(self.node_groups)}
        return (
            {**groups, ("control_plane", "login"): self.control_plane.login}
            if isinstance(self.control_plane, Pcs)
            else groups
        )

    @property
    def script_objects(self) -> tuple[str, ...]:
        """S3 objects of boot scripts, as bucket/key."""
        scripts = [script for group in self.boot_groups.values() for script in group.boot_scripts]
        return tuple(dict.fromkeys("/".join(script.bucket_and_key) for script in scripts if script.bucket_and_key))

    @property
    def fleet(self) -> Fleet:
        """The node groups with the network and storage that they use."""
        return Fleet(self.node_groups, self.network, self.storage)

    @property
    def launched_groups(self) -> tuple[NodeGroup, ...]:
        """Node groups as they are launched: one group for each block of an UltraServer."""
        return self.fleet.launched_groups

    @property
    def node_addresses(self) -> int:
        """IPv4 addresses that the node subnet needs: nodes with their pods, login or CPU nodes, and file servers."""
        plane = self.control_plane
        pods = 0 if isinstance(plane, Pcs) else POD_ADDRESSES
        cpu = plane.login.count if isinstance(plane, Pcs) else plane.cpu_nodes.room * (1 + pods)
        groups = self.fleet.known_groups
        here = [group for _, group in groups if not group.zones or self.availability_zone in group.zones]
        nodes = sum(group.max_count * (addresses(group.layout(plane.type)) + pods) for group in here)
        return nodes + cpu + self.storage.addresses

    @property
    def control_plane_addresses(self) -> int:
        """IPv4 addresses that each control-plane subnet needs; 0 on PCS."""
        if isinstance(self.control_plane, Pcs):
            return 0
        return self.control_plane.subnet_addresses + bool(self.access.access_host)

    @property
    def nodes(self) -> int:
        """Nodes at the maximum count of every group."""
        return self.fleet.nodes

    @property
    def _zone_of_region(self) -> bool:
        return bool(re.fullmatch(rf"{re.escape(self.region)}([a-f]|-[a-z]{{3}}-\d[a-z])", self.availability_zone))

    @rule
    def _name_of_buckets(self) -> Iterator[Problem]:
        """The names of new buckets begin with the name (S3 User Guide, "General purpose bucket naming rules", 2026)."""
        yield from environment_name_problems(self.name)

    @rule
    def _nothing_is_retained(self) -> Iterator[Problem]:
        """CloudFormation deletes by the template that is deployed, which `validate` cannot see."""
        if self.retain:
            return
        if self.protect:
            message = "protect: true and retain: false contradict each other"
            yield Problem("retain-with-protect", "retain", message, "remove retain, or set protect: false")
            return
        message = "deleting the stacks deletes their data; resources that an earlier deployment retains stay"
        hint = "if an earlier deployment had retain: true, deploy once with retain: false, then destroy"
        yield Problem("data-not-retained", "retain", message, hint, "warning")

    @rule
    def _homes_are_backed_up(self) -> Iterator[Problem]:
        """`protect` says that the data matter, and no bucket holds homes."""
        home = self.storage.home
        if self.protect and isinstance(home, OpenZfs) and not home.existing and not self.storage.backups:
            message = "nothing backs up the homes of users: a deleted file is gone"
            yield Problem(
                "homes-without-backups", ("storage", "home"), message, "set backups: {retention_days: 14}", "warning"
            )

    @rule
    def _existing_region(self) -> Iterator[Problem]:
        """AWS Regions of all partitions (AWS SDK endpoints, 2026)."""
        yield from region_problems(self.region)

    @rule
    def _services_in_region(self) -> Iterator[Problem]:
        """The lists of Regions with PCS and with Grafana age, so this is only a warning."""
        grafana = self.observability.grafana.auth != "none"
        yield from service_problems(self.region, pcs=isinstance(self.control_plane, Pcs), grafana=grafana)

    @rule
    def _valid_tags(self) -> Iterator[Problem]:
        """Tags that every service accepts (EC2 User Guide, "Tag restrictions"; IAM User Guide, tags, 2026)."""
        on_eks = isinstance(self.control_plane, Eks)
        yield from tag_problems(self.tags, "tags", on_eks=on_eks)
        yield from tag_problems(self.node_tags, "node_tags", on_eks=on_eks)

    @rule
    def _arns_of_this_place(self) -> Iterator[Problem]:
        """IAM and EC2 use resources of the same partition.

        A boundary is a policy of the account or of AWS (IAM User Guide, "Permissions boundaries", 2026).
        """
        yield from arn_problems(self._arns(), self.region, self.account)

    def _arns(self) -> Iterator[Arn]:
        """ARNs in the file, with their paths."""
        for path, named in self.observability.arns():
            yield Arn(("observability", *path), named, own_account="role_arn" in path)
        for name, bucket in self.storage.buckets.items():
            if bucket.key_arn:
                yield Arn(("storage", "buckets", name, "key_arn"), bucket.key_arn, own_account=False)
        if directory := self.access.directory:
            for key in ("secret_arn", "secret_key_arn"):
                if named := getattr(directory, key):
                    yield Arn(("access", "directory", key), named, own_account=False)
        if self.permissions_boundary:
            yield Arn(("permissions_boundary",), self.permissions_boundary, own_account=True)
        for i, group in enumerate(self.node_groups):
            if arn := group.purchase.reservation_group_arn:
                yield Arn(("node_groups", i, "purchase", "reservation_group_arn"), arn, own_account=False)
        for path, nodes in self.boot_groups.items():
            for i, policy in enumerate(nodes.policies):
                yield Arn((*path, "policies", i), policy, own_account=True)
        if isinstance(self.control_plane, Eks):
            plane: Path = ("control_plane",)
            for i, role in enumerate(self.control_plane.admins):
                yield Arn((*plane, "admins", i), role, own_account=False)
            for i, team in enumerate(self.control_plane.teams):
                for j, role in enumerate(team.members):
                    yield Arn((*plane, "teams", i, "members", j), role, own_account=False)

    @rule
    def _scrape_interval(self) -> Iterator[Problem]:
        """AMP User Guide, "AWS managed collectors" (2026)."""
        seconds = self.observability.scrape_interval_seconds
        on_eks = isinstance(self.control_plane, Eks) and self.observability.collects_metrics
        if on_eks and seconds < SCRAPER_INTERVAL_SECONDS:
            message = f"the managed scraper of AMP reads metrics every {SCRAPER_INTERVAL_SECONDS} s or less often"
            hint = f"set scrape_interval_seconds: {SCRAPER_INTERVAL_SECONDS}, or use a control plane of type pcs"
            yield Problem("scrape-interval-on-eks", ("observability", "scrape_interval_seconds"), message, hint)

    @rule
    def _dropped_metrics(self) -> Iterator[Problem]:
        """What a control plane collects, and what its alerts need, differ."""
        for problem in self.observability.dropped_problems(self.control_plane.type):
            yield replace(problem, at=("observability", *problem.path))

    @rule
    def _repair(self) -> Iterator[Problem]:
        """On PCS the alert manager of a new workspace has nodes drained. On EKS two keys have to agree on repair."""
        section, plane = self.observability, self.control_plane
        acts = section.auto_repair
        if isinstance(plane, Pcs):
            yield from section.repair_problems()
            return
        repairs = plane.node_repair.enabled if "enabled" in plane.node_repair.model_fields_set else None
        if acts is not None and repairs is not None and acts != repairs:
            at: Path = ("observability", "auto_repair") if acts else ("control_plane", "node_repair", "enabled")
            other = "control_plane.node_repair.enabled" if acts else "observability.auto_repair"
            message = f"{other} is false, so no node is repaired and {at[-1]} is ignored"
            hint = f"remove {at[-1]}, or set {other}: true"
            yield Problem("node-repair-contradiction", at, message, hint, "warning")

    @rule
    def _zone(self) -> Iterator[Problem]:
        zone = self.availability_zone
        if not self._zone_of_region and not from_cdk(zone) and not list(region_problems(self.region)):
            message = f"{zone} is not a zone of {self.region}, such as {self.region}a or {self.region}-dfw-2a"
            if is_zone_id(zone):
                message = f"{zone} is the id of a zone; availability_zone takes a name, such as {self.region}a"
            letter = zone if re.fullmatch("[a-f]", zone) else "a"
            hint = f"set availability_zone: {self.region}{letter}"
            hint += "" if letter == zone else ", or the zone of your capacity"
            yield Problem("zone-outside-region", "availability_zone", message, hint)

    @rule
    def _zones_of_groups(self) -> Iterator[Problem]:
        """Nodes without EFA may be in several zones, each with a subnet."""
        if list(region_problems(self.region)) or not (self._zone_of_region or from_cdk(self.availability_zone)):
            return
        if existing := self.network.existing:
            yield from zone_subnet_problems(existing, self.availability_zone)
        pods = 0 if isinstance(self.control_plane, Pcs) else POD_ADDRESSES
        zone = self.availability_zone
        yield from zone_problems(self.fleet, self.region, zone, pods=pods, pools=self.pools)
        yield from room_of_pools(self.fleet, zone, self.node_addresses, pods=pods, pools=self.pools)

    @rule
    def _control_plane_zones(self) -> Iterator[Problem]:
        """EKS refuses some zones, by id (EKS User Guide, "VPC and subnet requirements", 2026)."""
        if create := self.network.create:
            on_eks = isinstance(self.control_plane, Eks)
            yield from control_plane_zone_problems(create.control_plane_zones, self.region, on_eks=on_eks)

    @rule
    def _types_in_zone(self) -> Iterator[Problem]:
        """The list of zones with an instance type ages, so this is only a warning."""
        if self._zone_of_region and self.region in PARTITIONS:
            yield from types_in_zones(self.fleet, self.region, self.availability_zone)
            yield from pool_types_in_zone(self.pools, self.region, self.availability_zone)

    @rule
    def _boot_steps(self) -> Iterator[Problem]:
        yield from boot_step_problems(self.boot_groups, self.network, on_pcs=isinstance(self.control_plane, Pcs))

    @rule
    def _distinct_groups(self) -> Iterator[Problem]:
        yield from repeated_names("node_groups", [group.name for group in self.node_groups])
        parts = {part.name: group.name for group in self.node_groups for part in group.blocks() if part is not group}
        for i, name in enumerate(group.name for group in self.node_groups):
            if name in parts:
                message = f"{name} is already the name of a block of {parts[name]}"
                yield Problem("duplicate-name", ("node_groups", i, "name"), message, "choose another name")

    @rule
    def _distinct_reservations(self) -> Iterator[Problem]:
        yield from reservation_problems(self.fleet)

    @rule
    def _subnets_are_large_enough(self) -> Iterator[Problem]:
        create = self.network.create
        if create is None or any(problem.severity == "error" for problem in create.problems()):
            return
        plan, nodes, others = subnet_plan(create.block), self.node_addresses, self.control_plane_addresses
        if plan.holds(nodes, others):
            return
        if nodes > plan.node_addresses:
            message = f"the node subnet {plan.node} has {plan.node_addresses} addresses; the nodes need {nodes}"
        else:
            message = f"each control-plane subnet has {plan.control_plane_addresses} addresses; EKS, VPC endpoints and "
            message += f"system nodes need {others}"
        wider = wide_enough(create.block, nodes, others)
        hint = f"set cidr: {wider}" if wider else "set interfaces: fewest_ips, or lower count"
        yield Problem("subnet-too-small", ("network", "create", "cidr"), message, hint)

    @rule
    def _file_systems_in_place(self) -> Iterator[Problem]:
        """What the Region, the zone, the account and the clients let file systems be. The lists age: warnings."""
        zones, on_eks = (self.availability_zone, *self.further_zones), isinstance(self.control_plane, Eks)
        yield from file_system_problems(self.fleet, self.region, zones, local_zone=self.in_local_zone, on_eks=on_eks)

    @rule
    def _folders_can_be_created(self) -> Iterator[Problem]:
        """Only root creates folders in a new file system, and teams on EKS mount folders only."""
        yield from administration_problems(self.fleet, on_eks=isinstance(self.control_plane, Eks))

    @rule
    def _control_plane_fits(self) -> Iterator[Problem]:
        plane = self.control_plane
        yield from pcs_problems(self.fleet, plane) if isinstance(plane, Pcs) else eks_problems(self.fleet, plane)
        if isinstance(plane, Pcs):
            yield from slurm_team_problems(self.fleet, plane, self.access)

    @rule
    def _healthy_nodes(self) -> Iterator[Problem]:
        """See `infra/ultracluster/config/health.py`."""
        for problem in health_problems(self.health, self.fleet, self.control_plane):
            yield replace(problem, at=("health", *problem.path))

    @rule
    def _people(self) -> Iterator[Problem]:
        """Networks of people, and users, fit the VPC and the control plane."""
        on_eks, homes = isinstance(self.control_plane, Eks), self.storage.homes
        yield from access_problems(self.access, self.network, on_eks=on_eks, shared_homes=homes is not None)
        if isinstance(host := self.access.host, Host):
            yield from unlisted_type(host.instance_type, ("access", "host", "instance_type"))
