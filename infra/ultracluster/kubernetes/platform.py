"""Everything that is put into a cluster, in an order in which it can be."""

from ultracluster.config.environment import Environment
from ultracluster.kubernetes.karpenter import elastic
from ultracluster.kubernetes.parts import Deployed, Objects, Release
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.software import releases
from ultracluster.kubernetes.volumes import volumes


def platform(environment: Environment, deployed: Deployed) -> tuple[Release | Objects, ...]:
    """Releases and objects of an EKS environment, each behind those that its `after` names.

    Raises ValueError when one names another that is not there, or when they wait for each other.
    """
    parts = (
        *releases(environment, deployed),
        *scheduling(environment),
        *volumes(environment, deployed),
        *elastic(environment, deployed),
    )
    ordered: dict[str, Release | Objects] = {}
    waiting = {part.name: part for part in parts}
    if len(waiting) < len(parts):
        raise ValueError("two parts of a platform have one name")
    while waiting:
        ready = [part for part in waiting.values() if all(name in ordered for name in part.after)]
        if not ready:
            missing = {name: part.after for name, part in waiting.items()}
            raise ValueError(f"these wait for what is not there, or for each other: {missing}")
        for part in ready:
            ordered[part.name] = waiting.pop(part.name)
    return tuple(ordered.values())
