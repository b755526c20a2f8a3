"""Changes of the two environment files in this folder: at least one of each key that can change."""

import copy
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ultracluster.config.environment import Environment

FOLDER = Path(__file__).parent
DELETED = "<deleted>"

Step = tuple[str, Any]
"""A path with names in place of indices, and its new value. `+` adds an entry to a list, DELETED removes one."""


class Edit(NamedTuple):
    """A file with `first` applied is the old file; with `steps` besides, the new one.

    The steps of a `mixed` edit are changes of their own.
    """

    base: str
    steps: tuple[Step, ...]
    first: tuple[Step, ...] = ()
    mixed: bool = False

    @property
    def name(self) -> str:
        """The test's name."""
        return "-".join([self.base, *(at for at, _ in self.steps)])


def environment(base: str, steps: Iterable[Step]) -> Environment:
    """The environment of a file of this folder with changes. Raises InvalidSettings for a file with errors."""
    data = copy.deepcopy(_file(f"{base}.yaml"))
    for at, value in steps:
        _apply(data, at.split("."), copy.deepcopy(value))
    if users := data.get("access", {}).get("users"):
        data["access"]["users"] = copy.deepcopy(_file(users))
    for group in (*data["node_groups"], data["control_plane"].get("login", {})):
        if scripts := group.get("bootstrap"):
            group["bootstrap"] = [str(FOLDER / each) if isinstance(each, str) else each for each in scripts]
    return Environment.model_validate(data)


@cache
def _file(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def _apply(data: Any, path: list[str], value: Any) -> None:
    for key in path[:-1]:
        data = data[_index(data, key)] if isinstance(data, list) else data.setdefault(key, {})
    last = path[-1]
    if isinstance(data, list):
        if last == "+":
            data.append(value)
        elif value == DELETED:
            del data[_index(data, last)]
        else:
            data[_index(data, last)] = value
    elif value == DELETED:
        data.pop(last, None)
    else:
        data[last] = value


def _index(entries: list[Any], name: str) -> int:
    found = [i for i, entry in enumerate(entries) if entry.get("name", entry.get("path")) == name]
    if not found:
        raise LookupError(name)
    return found[0]


KEY = "arn:aws:kms:us-east-2:111122223333:key/11234567-89ab-cdef-0123-456789abcdef"
POLICY = "arn:aws:iam::aws:policy/AmazonSQSReadOnlyAccess"
ROLE = "arn:aws:iam::111122223333:role/Another"
AMI, OTHER_AMI = "ami-0123456789abcdef0", "ami-0123456789abcdef1"
GROUP, PLANE = "node_groups.train", "control_plane"
SECRET = "arn:aws:secretsmanager:us-east-2:111122223333:secret"  # noqa: S105  # the start of an ARN
OLD_VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "node_subnet_id": "subnet-0123456789abcdef0",
    "control_plane_subnet_ids": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
    "zone_subnet_ids": {"us-east-2a": "subnet-0123456789abcdef3"},
}
IN_OLD_VPC = (("network", {"existing": OLD_VPC}),)
S3 = {"s3": "s3://site/a.sh", "version_id": "one", "sha256": "a" * 64}
TIERED = (
    (
        "storage.lustre",
        {
            "deployment": "intelligent_tiering",
            "efa": True,
            "throughput_capacity_mbps": 4000,
            "metadata_iops": 6000,
        },
    ),
)
WITH_EFA = (("storage.lustre.efa", True), ("storage.lustre.capacity_gib", 19200))
MORE_BUCKET = (("storage.buckets.more", {}),)
UNALERTED = (("observability.alerts", DELETED), ("observability.retention_days", DELETED))
UNMEASURED = (*UNALERTED, ("observability.grafana", DELETED))
OLD_METRICS = (*UNALERTED, ("observability.metrics", {"existing": "ws-01234567-89ab-cdef-0123-456789abcdef"}))
OLD_GRAFANA = (("observability.grafana", {"existing": "g-0123456789", "role_arn": "arn:aws:iam::111122223333:role/g"}),)
PAGED = (("observability.alerts.pagerduty", {"secret_arn": f"{SECRET}:one-AbCdEf"}),)
HOME = (
    (
        "storage.home",
        {"type": "openzfs", "existing": "fs-0123456789abcdef5", "security_group": "sg-0123456789abcdef5"},
    ),
)
ADMINISTRATORS = ["10.0.[0-15].[0-255]@tcp", "10.0.[16-31].[0-255]@tcp", "10.9.0.9@tcp"]
SQUASHED = (("storage.lustre.root_squash", "65533:65533"), ("storage.lustre.no_squash_nids", ADMINISTRATORS))

VARIED = (
    *MORE_BUCKET,
    *SQUASHED,
    *PAGED,
    (f"{GROUP}.image", AMI),
    (f"{GROUP}.bootstrap", [S3]),
    (f"{GROUP}.placement", {"existing": "mine"}),
)
"""Both files with other values, so that other changes are possible."""
ELSEWHERE = (*IN_OLD_VPC, *OLD_METRICS, *OLD_GRAFANA, *TIERED)

BOTH: list[tuple[Any, ...]] = [
    ("account", "111122223333"),
    ("tags", {"team": "two"}),
    ("node_tags", {"team": "two"}),
    ("permissions_boundary", "arn:aws:iam::111122223333:policy/boundary"),
    ("retain", False),
    ("availability_zone", "us-east-2c"),
    ("network", {"existing": OLD_VPC}),
    ("network.create.cidr", "10.64.0.0/16"),
    ("network.create.nat_gateways", 2),
    ("network.create.private_endpoints", False),
    ("network.create.flow_logs", False),
    ("network.create.control_plane_zones", ["us-east-2a", "us-east-2b"]),
    ("network.existing.vpc_id", "vpc-0123456789abcdef9", ELSEWHERE),
    ("network.existing.node_subnet_id", "subnet-0123456789abcdef9", ELSEWHERE),
    ("network.existing.zone_subnet_ids", {"us-east-2a": "subnet-0123456789abcdef8"}, ELSEWHERE),
    (
        "network.existing.control_plane_subnet_ids",
        ["subnet-0123456789abcdef7", "subnet-0123456789abcdef6"],
        ELSEWHERE,
    ),
    ("storage.home", "none"),
    ("storage.home", {"type": "efs", "existing": "fs-0123456789abcdef7"}),
    ("storage.buckets.more", {}),
    ("storage.buckets.more", DELETED, VARIED),
    ("storage.buckets.datasets.access", "read"),
    ("storage.buckets.more.existing", "another", VARIED),
    ("storage.buckets.checkpoints.lifecycle.noncurrent_days", 60),
    ("storage.buckets.checkpoints.lifecycle", DELETED),
    ("storage.lustre", DELETED, (("storage.lustre.links", DELETED),)),
    ("storage.lustre.capacity_gib", 7200),
    ("storage.lustre.capacity_gib", 2400),
    ("storage.lustre.throughput_mbps_per_tib", 500),
    ("storage.lustre.throughput_capacity_mbps", 8000, ELSEWHERE),
    ("storage.lustre.metadata_iops", 12000, ELSEWHERE),
    ("storage.lustre.metadata_iops", 6000, (*TIERED, ("storage.lustre.metadata_iops", 12000))),
    ("storage.lustre.efa", True, (("storage.lustre.capacity_gib", 19200),)),
    ("storage.lustre.compression", "none"),
    ("storage.lustre.mount_path", "/data"),
    ("storage.lustre.root_squash", "65534:65534", VARIED),
    ("storage.lustre.no_squash_nids", ADMINISTRATORS[:2], VARIED),
    ("storage.lustre.links./datasets.import_events", ["new", "changed"]),
    ("storage.lustre.links./datasets.import_events", DELETED),
    ("storage.lustre.links./checkpoints.import_events", ["new"]),
    ("storage.lustre.links./datasets.export_events", ["new"]),
    ("storage.lustre.links./checkpoints.export_events", ["new", "changed"]),
    ("storage.lustre.links./datasets.prefix", "raw"),
    ("storage.lustre.links./datasets.bucket", "more", VARIED),
    ("storage.lustre.links./datasets", DELETED),
    ("storage.lustre.links.+", {"path": "/results", "bucket": "more"}, VARIED),
    ("storage.more.+", {"name": "new", "type": "efs", "mount_path": "/new"}),
    (
        "storage.more.scratch",
        {
            "name": "scratch",
            "type": "lustre",
            "mount_path": "/scratch2",
            "capacity_gib": 2400,
            "throughput_mbps_per_tib": 125,
        },
    ),
    ("storage.more.scratch.capacity_gib", 4800),
    ("storage.more.scratch.capacity_gib", 1200),
    ("storage.more.scratch.mount_path", "/scratch3"),
    ("storage.more.scratch.compression", "none"),
    ("storage.more.scratch", DELETED),
    ("storage.more.tools.capacity_gib", 1024),
    ("storage.more.tools.capacity_gib", 256),
    ("storage.more.tools.throughput_mbps", 640),
    ("storage.more.tools.deployment", "single_az_2"),
    ("storage.more.tools.mount_path", "/tools2"),
    ("storage.more.oldefs.existing", "fs-0123456789abcdef9"),
    ("storage.more.oldefs.read_only", True),
    ("storage.more.oldefs.security_group", DELETED),
    ("storage.more.oldefs.mount_path", "/oldefs2"),
    ("storage.maintenance_window", "sat:06:00"),
    ("storage.backups", {"retention_days": 3}),
    (f"{GROUP}.instance_type", "p5e.48xlarge"),
    ("node_groups.prep.instance_types", ["c7i.48xlarge", "r7i.48xlarge"]),
    ("node_groups.prep.zones", ["us-east-2b"]),
    ("node_groups.prep.purchase.type", "on_demand"),
    (f"{GROUP}.count.max", 8),
    (f"{GROUP}.count.min", 0),
    ("node_groups.res.count", 6),
    ("node_groups.res.purchase.reservation_id", "cr-0123456789abcdef9"),
    ("node_groups.res.purchase.type", "capacity_block"),
    ("node_groups.block.purchase.reservation_id", "cr-0123456789abcdef9"),
    (f"{GROUP}.purchase.type", "spot"),
    (f"{GROUP}.placement", "none"),
    (f"{GROUP}.placement", {"existing": "mine"}),
    (f"{GROUP}.placement.existing", "yours", VARIED),
    ("node_groups.block.interfaces", "without_efa"),
    (f"{GROUP}.local_storage", "none"),
    (f"{GROUP}.root_volume_gib", 400),
    (f"{GROUP}.image", AMI),
    (f"{GROUP}.image", OTHER_AMI, VARIED),
    (f"{GROUP}.bootstrap", ["second.sh"]),
    (f"{GROUP}.bootstrap", [{**S3, "sha256": "b" * 64}], VARIED),
    (f"{GROUP}.policies", [POLICY]),
    (f"{GROUP}.policies", DELETED),
    (f"{GROUP}.security_groups", ["sg-0123456789abcdef0"]),
    ("access", DELETED),
    ("access.private_ranges", ["192.168.0.0/16", "172.16.0.0/16"]),
    ("access.host", False),
    ("access.host", {"instance_type": "m7i.large"}),
    ("observability.retention_days", 90),
    ("observability.scrape_interval_seconds", 60),
    ("observability.max_series", 5_000_000),
    ("observability.metrics", OLD_METRICS[-1][1], UNALERTED),
    ("observability.metrics", "none", UNMEASURED),
    ("observability.metrics.existing", "ws-11234567-89ab-cdef-0123-456789abcdef", ELSEWHERE),
    ("observability.drop", ["nccl/p2p"]),
    ("observability.logs.retention_days", 90),
    ("observability.auto_repair", True),
    ("observability.auto_repair", False),
    ("observability.auto_repair", False, (("observability.auto_repair", True),)),
    ("observability.alerts", DELETED),
    ("observability.alerts.email", ["other@example.com"]),
    ("observability.alerts.runbooks_url", "https://other.example.com"),
    ("observability.alerts.sns_topic_arn", "arn:aws:sns:us-east-2:111122223333:other"),
    ("observability.alerts.pagerduty", DELETED, VARIED),
    ("observability.alerts.pagerduty.secret_arn", f"{SECRET}:other-AbCdEf", VARIED),
    ("observability.alerts.pagerduty.secret_key", "key", VARIED),
    ("observability.grafana.auth", "none", (("observability.grafana", {"auth": "identity_center", "admins": []}),)),
    ("observability.grafana", OLD_GRAFANA[0][1]),
    ("observability.grafana.existing", "g-1123456789", ELSEWHERE),
    ("observability.grafana.role_arn", ROLE, ELSEWHERE),
    ("observability.grafana.editors", ["0067642ac7-1234abcd-56ef-78ab-90cd-0123456789ab"]),
    ("observability.grafana.admins", ["0067642ac7-1234abcd-56ef-78ab-90cd-0123456789ab"]),
]

PERIODIC_ONLY = (("health", {"accept": "none", "prolog": "none"}),)
CONTAINERS = {"files": "s3://commoncrawl/containers", "sha256": "0" * 64}
WITH_TEAMS = ((f"{PLANE}.teams", [{"name": "pretrain"}, {"name": "research"}, {"name": "gone"}]),)
WITH_TEAM = ((f"{PLANE}.teams", [{"name": "research"}]),)

PCS: list[tuple[Any, ...]] = [
    ("storage.home", {"type": "efs"}),
    ("storage.home.capacity_gib", 2048),
    ("storage.home.capacity_gib", 1030),
    ("storage.home.throughput_mbps", 640),
    ("storage.home.deployment", "single_az_2"),
    ("storage.home.existing", "fs-0123456789abcdef6", HOME),
    ("storage.home.volume", "/fsx/home", HOME),
    ("storage.home.security_group", "sg-0123456789abcdef6", HOME),
    ("storage.read_only_buckets", []),
    ("storage.buckets.archive.key_arn", KEY),
    ("storage.buckets.archive.existing", "another"),
    ("storage.buckets.archive", DELETED),
    ("storage.backups.retention_days", 3),
    ("storage.backups.window", "06:00"),
    ("storage.more.old.existing", "fs-0123456789abcdef8"),
    ("storage.more.old.read_only", True),
    ("storage.more.old.security_group", "sg-0123456789abcdef8"),
    ("storage.more.old.efa", True),
    ("storage.more.old.mount_path", "/old2"),
    ("storage.more.oldzfs.volume", "/fsx/a"),
    ("storage.more.oldzfs.existing", "fs-0123456789abcdef8"),
    ("storage.more.oldzfs.read_only", True),
    ("storage.more.oldzfs.security_group", DELETED),
    (f"{GROUP}.count.max", 2),
    ("node_groups.res.count", {"min": 0, "max": 4}),
    ("node_groups.res.count", {"min": 0, "max": 2}),
    (f"{GROUP}.slurm_settings", {"Weight": 20}),
    (f"{GROUP}.gres_settings", [{"Name": "shard", "Count": 8}]),
    (f"{GROUP}.idle_seconds", 300),
    ("node_groups.pool.purchase.reservation_group_arn", "arn:aws:resource-groups:us-east-2:111122223333:group/two"),
    ("node_groups.ultra.purchase.reservation_ids", ["cr-0123456789abcdef8"]),
    (f"{PLANE}.slurm_version", "26.05"),
    (f"{PLANE}.size", "large"),
    (f"{PLANE}.size", "auto"),
    (f"{PLANE}.accounting", False),
    (f"{PLANE}.slurm_settings", {"MinJobAge": 300}),
    (f"{PLANE}.slurm_settings", {"Epilog": "/opt/site/epilog"}),
    (f"{PLANE}.cgroup_settings", {"ConstrainRAMSpace": "yes"}),
    (f"{PLANE}.slurmdbd_settings", {"PurgeJobAfter": "12"}),
    (f"{PLANE}.idle_seconds", 300),
    (f"{PLANE}.rest_api", True),
    (f"{PLANE}.image_mirror", "oci://mirror.example.com/x"),
    (f"{PLANE}.record_output", True),
    (f"{PLANE}.metadata_access", "all"),
    (f"{PLANE}.containers", CONTAINERS),
    (f"{PLANE}.containers.files", "s3://commoncrawl/other", ((f"{PLANE}.containers", CONTAINERS),)),
    (f"{PLANE}.containers.sha256", "1" * 64, ((f"{PLANE}.containers", CONTAINERS),)),
    (f"{PLANE}.slurm_version", "26.05", ((f"{PLANE}.containers", CONTAINERS),)),
    (f"{PLANE}.login.instance_type", "m7i.8xlarge"),
    (f"{PLANE}.login.count", 2),
    (f"{PLANE}.login.image", AMI),
    (f"{PLANE}.login.root_volume_gib", 200),
    (f"{PLANE}.login.bootstrap", ["first.sh"]),
    (f"{PLANE}.login.policies", [POLICY]),
    (
        f"{PLANE}.login.policies",
        [POLICY],
        ((f"{PLANE}.login.policies", ["arn:aws:iam::aws:policy/AmazonS3FullAccess"]),),
    ),
    (f"{PLANE}.login.security_groups", ["sg-0123456789abcdef0"]),
    (f"{PLANE}.queues.prep.slurm_settings", {"PriorityTier": 2}),
    ("health.accept", "none"),
    ("health.on_failure", "replace"),
    ("health.prolog", "none"),
    ("health.periodic", "none"),
    ("health.periodic", "none", PERIODIC_ONLY),
    ("health.spares", {"res": 1}),
    (f"{PLANE}.queues.prep.node_groups", ["prep", "train"]),
    (f"{PLANE}.queues.prep.name", "data"),
    (f"{PLANE}.queues.+", {"name": "more", "node_groups": ["prep"]}),
    (f"{PLANE}.teams", [{"name": "research"}]),
    (f"{PLANE}.teams", DELETED, WITH_TEAM),
    (f"{PLANE}.teams.+", {"name": "more"}, WITH_TEAMS),
    (f"{PLANE}.teams.gone", DELETED, WITH_TEAMS),
    (f"{PLANE}.teams.pretrain.name", "science", WITH_TEAMS),
    (f"{PLANE}.teams.research.fairshare", 2, WITH_TEAMS),
    (f"{PLANE}.teams.research.qos", "high", WITH_TEAMS),
    (f"{PLANE}.teams.research.max_gpus", 16, WITH_TEAMS),
    (f"{PLANE}.teams.research.node_groups", ["train"], WITH_TEAMS),
    (f"{PLANE}.teams.research.members", ["ada"], WITH_TEAMS),
    ("access.users", DELETED),
    ("access.users", "others.yaml"),
    ("observability.grafana.saml_metadata_url", "https://x.example.com/m"),
    ("observability.grafana.saml_role_attribute", "groups"),
]

OWN_IMAGE = ((f"{GROUP}.image", AMI),)
EKS: list[tuple[Any, ...]] = [
    ("protect", True),
    ("node_groups.block.purchase.starts", "2027-01-11T11:30:00Z"),
    (f"{PLANE}.kubernetes_version", "1.35"),
    (f"{PLANE}.control_plane_tier", "tier-xl"),
    (f"{PLANE}.allowed_cidrs", ["54.240.142.0/24"]),
    (f"{PLANE}.admins", [ROLE]),
    (f"{PLANE}.system_nodes.instance_type", "m7i.8xlarge"),
    (f"{PLANE}.system_nodes.count", 4),
    (f"{PLANE}.cpu_nodes.instance_type", "m7i.16xlarge"),
    (f"{PLANE}.cpu_nodes.count", 5),
    (f"{PLANE}.cpu_nodes.count", 0),
    (f"{PLANE}.device_stack", "device_plugin"),
    (f"{PLANE}.scheduler", "kueue_with_volcano"),
    (f"{PLANE}.scheduler", "kai", ((f"{PLANE}.karpenter", False),)),
    (f"{PLANE}.jobs", ["jobset", "trainer"]),
    (f"{PLANE}.karpenter", False),
    (f"{PLANE}.karpenter", True),
    (f"{PLANE}.karpenter", True, ((f"{PLANE}.karpenter", False),)),
    (f"{PLANE}.karpenter.pools.prep.limits.cpus", 100),
    (f"{PLANE}.karpenter.pools.eval.limits.gpus", 16),
    (f"{PLANE}.karpenter.pools.try.limits.nodes", 3),
    (f"{PLANE}.karpenter.pools.prep.families", ["c7i"]),
    (f"{PLANE}.karpenter.pools.prep.purchase", "on_demand"),
    (f"{PLANE}.karpenter.pools.prep.weight", 10),
    (f"{PLANE}.karpenter.pools.prep.idle_minutes", 7),
    (f"{PLANE}.karpenter.pools.prep.zones", ["us-east-2b"]),
    (f"{PLANE}.karpenter.pools.prep.root_volume_gib", 200),
    (f"{PLANE}.karpenter.pools.eval.instance_types", ["g6e.2xlarge"]),
    (f"{PLANE}.karpenter.pools.try.efa", False),
    (f"{PLANE}.karpenter.pools.prep", DELETED),
    (f"{PLANE}.karpenter.pools.+", {"name": "new", "families": ["m7i"], "limits": {"cpus": 768}}),
    (f"{PLANE}.node_repair.enabled", False),
    (f"{PLANE}.node_repair.max_unhealthy_percent", 30),
    (f"{PLANE}.image_release", "1.34.9-20260801"),
    (f"{PLANE}.image_release", "1.34.9-20260801", OWN_IMAGE),
    (f"{PLANE}.kubernetes_version", "1.35", OWN_IMAGE),
    (f"{PLANE}.chart_mirror", "oci://mirror.example.com/x"),
    (f"{PLANE}.teams.research.priority", "high"),
    (f"{PLANE}.teams.research.may_borrow", False),
    (f"{PLANE}.teams.research.members", [ROLE]),
    (f"{PLANE}.teams.research.user", "2001:2001"),
    (f"{PLANE}.teams.research.load_balancers", 2),
    (f"{PLANE}.teams.research.gpus", {"train": 8, "res": 16, "block": 32}),
    (f"{PLANE}.teams.pretrain.name", "pre"),
    ("health.accept", "none"),
    ("health.accept", "full"),
    ("health.on_failure", "replace"),
    ("health.spares", {"train": 1}, ((f"{PLANE}.teams.research.gpus", {"train": 8, "res": 16, "block": 32}),)),
]

AD = {
    "type": "ad",
    "domain": "corp.example.com",
    "ldap_urls": ["ldaps://dc1.corp.example.com"],
    "secret_arn": f"{SECRET}:ad-AbCdEf",
    "groups": ["gpu"],
}
WITH_AD = (("access.users", DELETED), ("access.directory", AD))
"""Keys of a directory: each ends in the same files of the nodes."""
PCS += [
    ("access.directory.domain", "other.example.com", WITH_AD),
    ("access.directory.ldap_urls", ["ldaps://dc2.corp.example.com"], WITH_AD),
    ("access.directory.secret_arn", f"{SECRET}:ad2-AbCdEf", WITH_AD),
    ("access.directory.secret_key_arn", KEY, WITH_AD),
    ("access.directory.id_mapping", "posix", WITH_AD),
    ("access.directory.groups", ["other"], WITH_AD),
    ("access.directory.sudo_groups", ["admins"], WITH_AD),
    ("access.directory.login", "keys_or_passwords", WITH_AD),
]


EXTRA = {"name": "extra", "instance_type": "c7i.48xlarge", "count": 2}
WITH_QUEUE = (("node_groups.+", EXTRA), (f"{PLANE}.queues.+", {"name": "extra", "node_groups": ["extra"]}))
WITH_FAR = (("node_groups.+", {**EXTRA, "name": "far", "zones": ["us-east-2c"]}),)
WITH_FAR_QUEUE = (*WITH_FAR, (f"{PLANE}.queues.+", {"name": "far", "node_groups": ["far"]}))
FAR_POOL = {"name": "far", "families": ["c7i"], "zones": ["us-east-2c"], "limits": {"cpus": 768}}
WITH_FAR_POOL = ((f"{PLANE}.karpenter.pools.+", FAR_POOL),)
"""Nodes in a zone that nothing else names."""
TWO_BLOCKS = (
    ("node_groups.ultra.purchase.reservation_ids", ["cr-0123456789abcdef2", "cr-0123456789abcdef8"]),
    ("node_groups.ultra.count", 36),
)
THREE_BLOCKS = (
    ("node_groups.ultra.purchase.reservation_ids", [f"cr-0123456789abcdef{i}" for i in (2, 8, 9)]),
    ("node_groups.ultra.count", 54),
)
TOGETHER = [
    Edit("pcs", WITH_QUEUE),
    Edit("pcs", (("node_groups.extra", DELETED), (f"{PLANE}.queues.extra", DELETED)), WITH_QUEUE),
    Edit("pcs", (("node_groups.far", DELETED), (f"{PLANE}.queues.far", DELETED)), WITH_FAR_QUEUE),
    Edit("eks", (("node_groups.far.zones", ["us-east-2a"]),), WITH_FAR),
    Edit("eks", ((f"{PLANE}.karpenter.pools.far", DELETED),), WITH_FAR_POOL),
    Edit("eks", ((f"{PLANE}.karpenter", False),), WITH_FAR_POOL),
    Edit("eks", (("node_groups.+", EXTRA),)),
    Edit("eks", (("node_groups.extra", DELETED),), (("node_groups.+", EXTRA),)),
    Edit("pcs", TWO_BLOCKS),
    Edit("pcs", THREE_BLOCKS, TWO_BLOCKS),
    Edit("pcs", (("node_groups.ultra.purchase.ultraserver", "u-p6e-gb200x36"), ("node_groups.ultra.count", 9))),
    Edit("pcs", ((f"{GROUP}.count.max", 60),), ((f"{PLANE}.size", "auto"), (f"{GROUP}.count.max", 2))),
    Edit("eks", ((f"{GROUP}.root_volume_gib", 400), ("node_groups.res.count", 6))),
]
"""Changes of several keys that only hold together."""


def edits() -> list[Edit]:
    """Every change as a test."""
    rows = [(base, row) for base, rows in (("pcs", BOTH + PCS), ("eks", BOTH + EKS)) for row in rows]
    one_step = [Edit(base, ((at, new),), *first) for base, (at, new, *first) in rows]
    return [*one_step, *TOGETHER]


ANOTHER_NAME = "an entry of another name is another entry: one is added and one removed, which is tested"
ONE_VALUE = "has one value"
UNTESTED: dict[tuple[str, str], str] = {
    ("Environment", "schema_version"): ONE_VALUE,
    ("Environment", "name"): "names all stacks, so that there are no two templates of one stack",
    ("Environment", "region"): "stacks of another Region are others: there are no two templates of one stack",
    ("Environment", "control_plane"): "compared as control_plane.type: tests/unit/config/test_effects.py",
    ("Eks", "type"): "compared as control_plane.type: tests/unit/config/test_effects.py",
    ("Pcs", "type"): "compared as control_plane.type: tests/unit/config/test_effects.py",
    ("Eks", "endpoint"): "changes with allowed_cidrs, which is tested",
    ("Environment", "protect"): "termination protection is in no template; on EKS it is tested",
    ("Team", "node_groups"): "changes with gpus, which is tested",
    ("Lustre", "deployment"): "changes with the keys of the other type; that of MoreLustre is tested",
    ("MoreLustre", "metadata_iops"): "the key of Lustre is tested",
    ("MoreLustre", "throughput_capacity_mbps"): "the key of Lustre is tested",
    ("Efs", "security_group"): "that of MoreEfs is tested",
    **{(f"More{kind}", "name"): ANOTHER_NAME for kind in ("Lustre", "OpenZfs", "Efs")},
    **{(kind, "type"): "another type is another model: the section is tested" for kind in ("OpenZfs", "Efs")},
    **{(f"More{kind}", "type"): ONE_VALUE for kind in ("Lustre", "OpenZfs", "Efs")},
    **{(kind, "name"): ANOTHER_NAME for kind in ("NodeGroup", "Queue", "KarpenterPool", "Team", "SlurmTeam")},
    ("S3Link", "path"): ANOTHER_NAME,
}
"""Fields whose change the templates cannot show, each with the reason."""

WITHIN = {
    "Directory": ("Access", "directory"),
    "DeviceStacks": ("Eks", "device_stack"),
    "ExistingPlacementGroup": ("NodeGroup", "placement"),
    "Host": ("Access", "host"),
    "Scale": ("NodeGroup", "count"),
    "Script": ("NodeGroup", "bootstrap"),
}
"""Models whose values are compared as one, each with the field that holds it."""
