"""Karpenter's pools, for any environment on EKS."""

from typing import Any

from hypothesis import strategies as st

Data = dict[str, Any]

CPU_POOLS: list[Data] = [
    {"name": "prep", "families": ["c7i", "m7i"], "purchase": "spot", "limits": {"cpus": 256}},
    {"name": "arm", "instance_types": ["m7g.4xlarge", "m7gd.8xlarge"], "limits": {"nodes": 4}},
    {"name": "hpc", "instance_types": ["hpc7a.96xlarge"], "efa": True, "limits": {"nodes": 2, "cpus": 192}},
]
GPU_POOLS: list[Data] = [
    {"name": "eval", "families": ["g6e"], "purchase": ["spot", "on_demand"], "limits": {"gpus": 16}, "weight": 50},
    {"name": "try", "instance_types": ["p5.48xlarge"], "efa": True, "limits": {"nodes": 2}, "idle_minutes": 60},
]


def karpenter(*, claims: bool) -> st.SearchStrategy[bool | Data]:
    """Karpenter or not, and with which pools: pods that claim GPUs go with pools without GPUs only."""
    pools = CPU_POOLS if claims else [*CPU_POOLS, *GPU_POOLS]
    own = st.lists(st.sampled_from(pools), min_size=1, unique_by=lambda pool: str(pool["name"]))
    return st.one_of(st.just(False), *([] if claims else [st.just(True)]), own.map(lambda chosen: {"pools": chosen}))
