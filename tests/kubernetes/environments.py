"""EKS environments for tests: one fleet, with the settings that a test changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.catalog import catalog
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.environment import EksEnvironment

STACKS = ("gpu_operator", "device_plugin", "dra")
SCHEDULERS = ("kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano")
OPERATORS = ("trainer", "jobset", "leader_worker_set", "mpi", "ray")

P5 = {"train": "p5.48xlarge"}
GB200 = {"nvl": "p6e-gb200.36xlarge"}


def eks_environment(
    groups: Mapping[str, str] = P5,
    *,
    nat_gateways: int = 1,
    lustre: bool = False,
    buckets: Sequence[str] = (),
    observability: Mapping[str, Any] | None = None,
    **settings: Any,
) -> EksEnvironment:
    """An environment with `groups`, instance types by name. `settings` are added to those that every file needs."""
    storage: dict[str, Any] = {"buckets": {name: {} for name in buckets}}
    if lustre:
        storage["lustre"] = {"deployment": "persistent_2", "capacity_gib": 4800, "throughput_mbps_per_tib": 500}
    shares = {name: catalog[instance_type].gpu_count for name, instance_type in groups.items()}
    environment = Environment.model_validate(
        {
            "schema_version": 1,
            "name": "test",
            "region": "us-east-2",
            "availability_zone": "us-east-2b",
            "network": {"create": {"cidr": "10.0.0.0/16", "nat_gateways": nat_gateways}},
            "storage": storage,
            "node_groups": [_group(name, instance_type) for name, instance_type in groups.items()],
            "observability": observability or {},
            "control_plane": {
                "type": "eks",
                "kubernetes_version": "1.35",
                "admins": ["arn:aws:iam::111122223333:role/Platform"],
                "teams": [{"name": "research", "node_groups": list(groups), "gpus": shares}],
                **settings,
            },
        }
    )
    return EksEnvironment.from_environment(environment)


def _group(name: str, instance_type: str) -> dict[str, Any]:
    if instance_type.startswith("p6e"):
        bought = {"ultraserver": "u-p6e-gb200x72", "reservation_ids": ["cr-0123456789abcdef0"]}
        purchase = {"type": "capacity_block", **bought}
        return {"name": name, "instance_type": instance_type, "count": 18, "placement": "none", "purchase": purchase}
    return {"name": name, "instance_type": instance_type, "count": 2, "purchase": {"type": "on_demand"}}
