"""A fleet that two teams share, and what a test says otherwise."""

from typing import Any

from ultracluster.config.environment import Environment

SCHEDULERS = ("kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano")
STACKS = ("gpu_operator", "device_plugin", "dra")
P5EN = {"train": ("p5en.48xlarge", 16)}
TEAMS = (
    {"name": "pretrain", "node_groups": ["train"], "gpus": 96, "priority": "high"},
    {"name": "research", "node_groups": ["train"], "gpus": 32, "may_borrow": True},
)
ULTRASERVER = {
    "type": "capacity_block",
    "ultraserver": "u-p6e-gb200x72",
    "reservation_ids": ["cr-0123456789abcdef0", "cr-0123456789abcdef1"],
}


def fleet(
    groups: dict[str, tuple[str, int]] = P5EN, teams: tuple[dict[str, Any], ...] = TEAMS, **settings: Any
) -> Environment:
    """Node groups by name, each a type and a count of nodes, under an EKS control plane with `settings`."""
    return Environment.model_validate(
        {
            "schema_version": 1,
            "name": "staging",
            "region": "us-west-2",
            "availability_zone": "us-west-2c",
            "network": {"create": {"cidr": "10.0.0.0/16"}},
            "storage": {"lustre": {"capacity_gib": 9600, "throughput_mbps_per_tib": 250}},
            "node_groups": [
                {
                    "name": name,
                    "instance_type": instance_type,
                    "count": count,
                    "purchase": ULTRASERVER if instance_type.startswith("p6e") else {"type": "on_demand"},
                }
                for name, (instance_type, count) in groups.items()
            ],
            "control_plane": {
                "type": "eks",
                "kubernetes_version": "1.35",
                "admins": ["arn:aws:iam::111122223333:role/Platform"],
                "teams": list(teams),
                **settings,
            },
        }
    )


def one_team(instance_type: str, nodes: int, gpus: int, **settings: Any) -> Environment:
    """A team that has all the nodes of one type for its own."""
    team = {"name": "pretrain", "node_groups": ["train"], "gpus": gpus}
    return fleet({"train": (instance_type, nodes)}, (team,), **settings)
