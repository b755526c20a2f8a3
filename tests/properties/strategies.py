"""Hypothesis strategies: valid environments as plain data, and environments with one thing broken."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.properties.pools import karpenter
from ultracluster.catalog import catalog, eks, lustre, nfs, pcs, ultraservers
from ultracluster.config.eks import RESERVED_NAMES
from ultracluster.config.eks_fleet import SYSTEM_GROUP

Data = dict[str, Any]

HEX = "0123456789abcdef"
PLACES = {
    "p6-b300.48xlarge": ("us-west-2", "us-west-2b"),
    "p6e-gb200.36xlarge": ("us-east-1", "us-east-1-dfw-2a"),
}
ORDINARY = [name for name, entry in catalog.items() if not entry.ultraserver_only]
ULTRASERVER_BLOCKS = 2

PLANES = ("pcs", "eks")
SCHEDULERS = ["kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano"]
JOBS = ["trainer", "jobset", "leader_worker_set", "mpi", "ray", "volcano"]
MIRROR = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror"

words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=8)
names = words.filter(lambda word: word not in RESERVED_NAMES | {SYSTEM_GROUP})
reservations = st.text(HEX, min_size=17, max_size=17).map(lambda digits: f"cr-{digits}")
events = st.lists(st.sampled_from(["new", "changed", "deleted"]), unique=True)


def as_yaml(data: Any) -> str:
    """Data as text that YAML reads back to the same: JSON is YAML."""
    return json.dumps(data, indent=1)


def _some(required: Data, optional: Data) -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries(required, optional=optional)


images = st.one_of(
    st.just("auto"),
    st.text(HEX, min_size=17, max_size=17).map(lambda digits: f"ami-{digits}"),
    st.just("ssm:/golden/image"),
)


@st.composite
def purchases(draw: st.DrawFn, plane: str, region: str) -> Data:
    """Purchase of instances other than UltraServers."""
    kinds = ["on_demand", "spot", "reservation", "group", "capacity_block"]
    kind = draw(st.sampled_from([*kinds, "interruptible"] if plane == "pcs" else kinds))
    match kind:
        case "on_demand" | "spot":
            return {"type": kind}
        case "group":
            arn = f"arn:aws:resource-groups:{region}:111122223333:group/train"
            return {"type": "reservation", "reservation_group_arn": arn}
        case "interruptible":
            return {"type": "interruptible_reservation", "reservation_id": draw(reservations)}
        case _:
            return {"type": kind, "reservation_id": draw(reservations), **draw(_starts(kind, plane))}


def _starts(kind: str, plane: str) -> st.SearchStrategy[Data]:
    """Start of a capacity block, which only EKS needs."""
    ahead = {"starts": st.just("2099-01-11T11:30:00Z")} if kind == "capacity_block" and plane == "eks" else {}
    return _some({}, ahead)


@st.composite
def _node_group(draw: st.DrawFn, name: str, instance_type: str, plane: str, region: str) -> Data:
    purchase: Data
    count: int | Data
    if catalog[instance_type].ultraserver_only:
        bought = draw(st.sampled_from(sorted(ultraservers)))
        ids = draw(st.lists(reservations, min_size=1, max_size=ULTRASERVER_BLOCKS, unique=True))
        purchase = {"type": "capacity_block", "ultraserver": bought, "reservation_ids": ids}
        purchase |= draw(_starts("capacity_block", plane))
        count = ultraservers[bought].instances * len(ids)
    else:
        purchase = draw(purchases(plane, region))
        most = draw(st.integers(1, 64))
        ranges = st.integers(0, most).map(lambda least: {"min": least, "max": most})
        fixed = plane == "eks" and purchase["type"] == "capacity_block"
        count = draw(st.just(most) if fixed else st.one_of(st.just(most), ranges))
    placements: list[Any] = ["auto", "none"]
    if purchase["type"] != "capacity_block":
        placements.append({"existing": "my-group"})
    return draw(
        _some(
            {
                "name": st.just(name),
                "instance_type": st.just(instance_type),
                "count": st.just(count),
                "purchase": st.just(purchase),
            },
            {
                "placement": st.sampled_from(placements),
                "interfaces": st.sampled_from(["auto", "fewest_ips", "max_bandwidth", "efa_with_ip"]),
                "local_storage": st.sampled_from(["raid0", "none"]),
                "root_volume_gib": st.integers(100, 16384),
                "image": images,
            },
        )
    )


@st.composite
def _lustre(draw: st.DrawFn, buckets: list[str]) -> Data:
    deployment = draw(st.sampled_from(["persistent_2", "scratch_2", "intelligent_tiering"]))
    settings: Data = {"deployment": deployment}
    match deployment:
        case "persistent_2":
            tier, efa = draw(st.sampled_from(lustre.THROUGHPUT_TIERS)), draw(st.booleans())
            step = lustre.EFA_STEP_GIB[tier] if efa else lustre.CAPACITY_STEP_GIB
            settings |= {"throughput_mbps_per_tib": tier, "efa": efa, "capacity_gib": step * draw(st.integers(1, 20))}
            if draw(st.booleans()):
                settings["metadata_iops"] = draw(st.sampled_from(["automatic", *lustre.METADATA_IOPS]))
        case "scratch_2":
            settings["capacity_gib"] = draw(st.sampled_from([1200, 2400, 4800, 7200]))
        case _:
            settings["throughput_capacity_mbps"] = lustre.THROUGHPUT_CAPACITY_STEP_MBPS * draw(st.integers(1, 10))
            settings["metadata_iops"] = draw(st.sampled_from(lustre.INTELLIGENT_TIERING_METADATA_IOPS))
            settings["efa"] = draw(st.booleans())
    if buckets and deployment != "intelligent_tiering":
        paths = draw(st.lists(words, max_size=lustre.MAXIMUM_LINKS, unique=True))
        settings["links"] = [
            {
                "path": f"/{path}",
                "bucket": draw(st.sampled_from(buckets)),
                "prefix": path,
                "import_events": draw(events),
                "export_events": draw(events),
            }
            for path in paths
        ]
    others = {
        "compression": st.sampled_from(["lz4", "none"]),
        "mount_path": st.sampled_from(["/fsx", "/data/shared"]),
        "root_squash": st.just("65534:65534"),
    }
    settings |= draw(_some({}, others))
    if "root_squash" in settings:
        settings["no_squash_nids"] = ["[0-255].[0-255].[0-255].[0-255]@tcp"]
    return settings


EXISTING = st.just({"existing": "fs-0123456789abcdef0", "security_group": "sg-0123456789abcdef0"})


@st.composite
def _openzfs(draw: st.DrawFn) -> Data:
    deployment = draw(st.sampled_from(sorted(nfs.THROUGHPUTS_MBPS)))
    return {
        "type": "openzfs",
        "deployment": deployment,
        "capacity_gib": draw(st.integers(nfs.SMALLEST_GIB, 10_000)),
        "throughput_mbps": draw(st.sampled_from(nfs.THROUGHPUTS_MBPS[deployment])),
    }


@st.composite
def _homes(draw: st.DrawFn) -> Data | str:
    existing = draw(st.booleans())
    kind = draw(st.sampled_from(["none", "efs", "openzfs"]))
    if kind == "none":
        return "none"
    if existing:
        return {"type": kind, "existing": "fs-0123456789abcdef1"}
    return draw(_openzfs()) if kind == "openzfs" else {"type": "efs"}


@st.composite
def _more(draw: st.DrawFn) -> list[Data]:
    """Up to four file systems, each with a name and a path of its own; at most one of them exists."""
    found = []
    for name in draw(st.lists(st.sampled_from(["a", "b-2", "models", "tools"]), unique=True)):
        if draw(st.booleans()) and not any("existing" in each for each in found):
            settings = {"type": draw(st.sampled_from(["lustre", "efs", "openzfs"])), **draw(EXISTING)}
        else:
            elastic: st.SearchStrategy[Data] = st.just({"type": "efs"})
            lustre_ = _lustre([]).map(lambda each: {"type": "lustre", **_servers(each)})
            settings = draw(st.one_of(elastic, _openzfs(), lustre_))
        found.append({"name": name, "mount_path": f"/more/{name}", **settings})
    return found


def _servers(settings: Data) -> Data:
    return {
        key: value
        for key, value in settings.items()
        if key not in ("mount_path", "root_squash", "no_squash_nids", "links")
    }


@st.composite
def _storage(draw: st.DrawFn, region: str) -> Data:
    keys = draw(st.lists(words, max_size=3, unique=True))
    created = _some({}, {"lifecycle": st.integers(1, 999).map(lambda days: {"noncurrent_days": days})})
    storage: Data = {
        "buckets": {
            key: draw(st.one_of(created, st.just(_existing(number, region)))) for number, key in enumerate(keys)
        }
    }
    if draw(st.booleans()):
        storage["lustre"] = draw(_lustre(keys))
    return storage | draw(_some({}, {"home": _homes(), "more": _more()}))


ALIKE = [
    ["c7i.48xlarge"],
    ["c7i.48xlarge", "m7i.48xlarge"],
    ["m7g.16xlarge", "c7g.16xlarge", "r7g.16xlarge"],
    ["hpc7a.96xlarge"],
]
"""Types without GPUs that one group may have, among them types for EFA."""


@st.composite
def _cpu_groups(draw: st.DrawFn, taken: list[str], network: Data, region: str) -> list[Data]:
    """At most one CPU group, whose name no other group has."""
    if draw(st.booleans()):
        return []
    types, most = draw(st.sampled_from(ALIKE)), draw(st.integers(1, 20))
    group: Data = {"name": draw(names.filter(lambda name: name not in taken)), "instance_types": types}
    group["count"] = draw(st.sampled_from([most, {"min": 0, "max": most}]))
    if types == ["hpc7a.96xlarge"]:
        return [group]
    wider = "create" in network and draw(st.booleans())
    more = {"zones": st.just([f"{region}a", f"{region}c"] if wider else [])}
    spot = {"purchase": st.just({"type": "spot"})}
    return [draw(_some({key: st.just(value) for key, value in group.items()}, more | spot))]


def _queues(groups: list[Data]) -> list[Data]:
    """UltraServers in a queue of their own, everything else in another."""
    ultra = [group["name"] for group in groups if _ultraserver(group)]
    others = [group["name"] for group in groups if group["name"] not in ultra]
    queues = [{"name": "ultra", "node_groups": ultra}, {"name": "train", "node_groups": others}]
    return [queue for queue in queues if queue["node_groups"]]


def _reservation_ids(group: Data) -> list[str]:
    purchase = group["purchase"]
    return [
        *([purchase["reservation_id"]] if "reservation_id" in purchase else []),
        *purchase.get("reservation_ids", []),
    ]


def _ultraserver(group: Data) -> bool:
    return "instance_type" in group and catalog[group["instance_type"]].ultraserver_only


def _most(group: Data) -> int:
    """Maximum node count of a group."""
    count = group["count"]
    return int(count if isinstance(count, int) else count["max"])


networks = st.one_of(
    _some(
        {"cidr": st.sampled_from(["10.0.0.0/16", "172.16.0.0/16"])},
        {"nat_gateways": st.integers(0, 2), "private_endpoints": st.booleans(), "flow_logs": st.booleans()},
    )
    .filter(lambda settings: settings.get("nat_gateways", 1) or settings.get("private_endpoints", True))
    .map(lambda settings: {"create": settings}),
    st.just(
        {
            "existing": {
                "vpc_id": "vpc-0123456789abcdef0",
                "node_subnet_id": "subnet-0123456789abcdef0",
                "control_plane_subnet_ids": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
            }
        }
    ),
)


def _existing(number: int, region: str) -> Data:
    """Every second bucket has a key of its own."""
    key = f"arn:aws:kms:{region}:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    return {"existing": f"my-bucket-{number}", **({"key_arn": key} if number % 2 else {})}


def _pcs(draw: st.DrawFn, groups: list[Data], *, homes: bool) -> Data:
    """Several login nodes need homes."""
    nodes, login = sum(map(_most, groups)), draw(st.integers(1, 2 if homes else 1))
    return draw(
        _some(
            {
                "type": st.just("pcs"),
                "slurm_version": st.just(list(pcs.SLURM_VERSIONS)[-1]),
                "login": _some({"count": st.just(login)}, {"instance_type": st.just("m7i.large"), "image": images}),
                "queues": st.just(_queues(groups)),
            },
            {
                "size": st.sampled_from(["auto", *(size for size, most in pcs.SIZES.items() if nodes + login <= most)]),
                "rest_api": st.booleans(),
                "slurm_settings": st.just({"SchedulerParameters": "bf_continue", "MinJobAge": 300}),
                "cgroup_settings": st.just({"ConstrainRAMSpace": "yes"}),
                "idle_seconds": st.sampled_from([1, 600, 1800]),
            },
        )
    ) | draw(st.sampled_from([{}, {"accounting": False}, {"slurmdbd_settings": {"PurgeJobAfter": "12month"}}]))


def _role(name: str) -> str:
    return f"arn:aws:iam::111122223333:role/{name}"


def _eks(draw: st.DrawFn, groups: list[Data], network: Data) -> Data:
    """Any scheduler, device stack and operators that go together, on any version."""
    ultraservers_too = any(catalog[group["instance_type"]].ultraserver_only for group in groups)
    stack, dra = draw(_device_stack(groups))
    scheduler = draw(st.sampled_from(SCHEDULERS))
    without_internet = network.get("create", {}).get("nat_gateways") == 0
    mirror = without_internet or draw(st.booleans())
    left_out = {*(() if scheduler == "volcano" else ("volcano",)), *(("mpi",) if mirror else ())}
    versions = [version for version in eks.KUBERNETES_VERSIONS if not (dra and eks.older(version, eks.DRA_KUBERNETES))]
    endpoints: list[Data] = [{}, {"endpoint": "private"}]
    endpoints.append({"endpoint": "public_and_private", "allowed_cidrs": ["54.240.143.0/24"]})
    plane: Data = {
        "type": "eks",
        "kubernetes_version": draw(st.sampled_from([*versions, "1.99"])),
        "admins": [_role("platform")],
        "device_stack": stack,
        "scheduler": scheduler,
        "teams": draw(_teams(groups)),
        "jobs": draw(st.lists(st.sampled_from([job for job in JOBS if job not in left_out]), unique=True)),
        "karpenter": False if without_internet else draw(karpenter(claims=dra or ultraservers_too)),
        **draw(st.sampled_from(endpoints)),
        **({"chart_mirror": MIRROR} if mirror else {}),
    }
    others = {
        "control_plane_tier": st.sampled_from(eks.TIERS),
        "system_nodes": _some({}, {"instance_type": st.just("m7g.xlarge"), "count": st.integers(2, 8)}),
        "node_repair": _some({}, {"enabled": st.booleans(), "max_unhealthy_percent": st.integers(1, 100)}),
    }
    return plane | draw(_some({}, others))


@st.composite
def _device_stack(draw: st.DrawFn, groups: list[Data]) -> tuple[str | Data, bool]:
    """One device stack for all groups or one for each, and whether any group uses `dra`."""
    one = draw(st.sampled_from(["gpu_operator", "device_plugin", "dra", None]))
    if one:
        return one, one == "dra"
    plugin = draw(st.sampled_from(["gpu_operator", "device_plugin"]))
    ultra = [group["name"] for group in groups if catalog[group["instance_type"]].ultraserver_only]
    others = [group["name"] for group in groups if group["name"] not in ultra]
    claimed = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    # where another group uses `dra`, UltraServers do too
    claimed += ultra if claimed or draw(st.booleans()) else []
    return {plugin: [name for name in [*ultra, *others] if name not in claimed], "dra": claimed}, bool(claimed)


@st.composite
def _teams(draw: st.DrawFn, groups: list[Data]) -> list[Data]:
    """One team that uses every group, and others that use some. Their quotas fit the fleet."""
    everything = [group["name"] for group in groups]
    left = {group["name"]: _most(group) * catalog[group["instance_type"]].gpu_count for group in groups}
    teams = []
    for number, name in enumerate(draw(st.lists(names, min_size=1, max_size=3, unique=True))):
        used = draw(st.lists(st.sampled_from(everything), min_size=1, unique=True)) if number else everything
        shares = {group: draw(st.integers(0, left[group])) for group in used}
        left |= {group: left[group] - share for group, share in shares.items()}
        team: Data = {"name": name, "node_groups": used, "gpus": shares}
        if len(used) == 1 and draw(st.booleans()):
            team["gpus"] = shares[used[0]]
        if not all(shares.values()):
            team["may_borrow"] = True
        others = {"priority": st.sampled_from(["high", "normal", "low"]), "members": st.just([_role(name)])}
        teams.append(team | draw(_some({}, others)))
    return teams


_with_metrics = _some(
    {},
    {
        "retention_days": st.integers(1, 1095),
        "grafana": st.sampled_from(
            [
                {"auth": "identity_center"},
                {"auth": "none"},
                {"auth": "saml", "saml_metadata_url": "https://idp.example.com/metadata"},
            ]
        ),
    },
)
observability = st.one_of(_with_metrics, st.just({"metrics": "none", "auto_repair": False}))


@st.composite
def environments(draw: st.DrawFn, planes: tuple[str, ...] = PLANES) -> Data:
    """A valid environment, of any instance type, purchase, storage and control plane: no rule refuses it."""
    plane = draw(st.sampled_from(planes))
    first = draw(st.sampled_from(list(catalog)))
    region, zone = PLACES.get(first, ("us-east-2", "us-east-2b"))
    types = [first, *draw(st.lists(st.sampled_from(ORDINARY), max_size=2))]
    group_names = draw(st.lists(names, min_size=len(types), max_size=len(types), unique=True))
    groups = [draw(_node_group(name, kind, plane, region)) for name, kind in zip(group_names, types, strict=True)]
    used = [id_ for group in groups for id_ in _reservation_ids(group)]
    assume(len(used) == len(set(used)))
    network = draw(networks)
    cpu_groups = draw(_cpu_groups(group_names, network, region))
    if "create" in network and draw(st.booleans()):
        network["create"]["control_plane_zones"] = [f"{region}a", f"{region}b"]
    if plane == "eks" and network.get("create", {}).get("nat_gateways") == 0:
        network["create"].pop("private_endpoints", None)
    storage = draw(_some({}, {"storage": _storage(region)}))
    homes = isinstance(storage.get("storage", {}).get("home"), dict)
    control_plane = _pcs(draw, [*groups, *cpu_groups], homes=homes) if plane == "pcs" else _eks(draw, groups, network)
    required = {
        "schema_version": st.just(1),
        "name": words,
        "region": st.just(region),
        "availability_zone": st.just(zone),
        "network": st.just(network),
        "node_groups": st.just([*groups, *cpu_groups]),
        "control_plane": st.just(control_plane),
    }
    optional = {
        "account": st.just("111122223333"),
        "tags": st.dictionaries(words, words, max_size=2),
        "permissions_boundary": st.just("arn:aws:iam::111122223333:policy/boundary"),
        "observability": observability,
    }
    return storage | draw(_some(required, optional))


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1, 2, 64, 65, 4096, 10**30, 1e308, 0.5]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(
        [
            "auto",
            "none",
            "p5.48xlarge",
            "p6e-gb200.36xlarge",
            "u-p6e-gb200x72",
            "spot",
            "<text>",
            "[key]",
            "<eks>",
            "pcs",
            "eks",
            "dra",
            "1.33",
        ]
    ),
    st.builds(list),
    st.builds(dict),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
"""Replacement values for mutations."""


@st.composite
def mutations(draw: st.DrawFn) -> Data:
    """A valid environment with one to three values dropped, replaced, duplicated, added or swapped."""
    data: Data = deepcopy(draw(environments()))
    for _ in range(draw(st.integers(1, 3))):
        holder = draw(st.sampled_from(list(_collections(data))))
        if isinstance(holder, list):
            _mutate_list(draw, holder)
        else:
            _mutate_mapping(draw, holder)
    return data


def _collections(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _collections(item)


def _mutate_mapping(draw: st.DrawFn, mapping: Data) -> None:
    how = draw(st.sampled_from(["drop", "replace", "replace", "add", "rename"]))
    if not mapping or how == "add":
        mapping[draw(st.text(max_size=8))] = draw(values)
        return
    key = draw(st.sampled_from(sorted(mapping)))
    if how == "replace":
        mapping[key] = draw(values)
        return
    value = mapping.pop(key)
    if how == "rename":
        mapping[f"{key}s"] = value


def _mutate_list(draw: st.DrawFn, items: list[Any]) -> None:
    how = draw(st.sampled_from(["drop", "replace", "duplicate", "swap"]))
    if not items:
        items.append(draw(values))
        return
    index = draw(st.integers(0, len(items) - 1))
    match how:
        case "drop":
            del items[index]
        case "replace":
            items[index] = draw(values)
        case "duplicate":
            items.append(deepcopy(items[index]))
        case _:
            items.reverse()
