"""A fleet that two teams share, with the settings that a test changes."""

from typing import Any

from ultracluster.config.environment import Environment
from ultracluster.kubernetes.environment import EksEnvironment

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


def fleet(*args: Any, **settings: Any) -> EksEnvironment:
    """The view of `fleet_file`."""
    return EksEnvironment.from_environment(fleet_file(*args, **settings))


def fleet_file(
    groups: dict[str, tuple[str, int]] = P5EN, teams: tuple[dict[str, Any], ...] = TEAMS, **settings: Any
) -> Environment:
    """Node groups by name, each an instance type and a number of nodes, with an EKS control plane of `settings`."""
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


def one_team(instance_type: str, nodes: int, gpus: int, **settings: Any) -> EksEnvironment:
    """The view of `one_team_file`."""
    return EksEnvironment.from_environment(one_team_file(instance_type, nodes, gpus, **settings))


def one_team_file(instance_type: str, nodes: int, gpus: int, **settings: Any) -> Environment:
    """One team and one node group, all of whose GPUs are the team's."""
    team = {"name": "pretrain", "node_groups": ["train"], "gpus": gpus}
    return fleet_file({"train": (instance_type, nodes)}, (team,), **settings)
