"""Everything that is installed into a cluster, in an order that satisfies every `after`."""

from collections.abc import Mapping

from ultracluster.kubernetes.acceptance import acceptance_objects
from ultracluster.kubernetes.deployed import DeployedResources
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.karpenter import karpenter_pools
from ultracluster.kubernetes.parts import Part, Release
from ultracluster.kubernetes.queues import team_and_queue_objects
from ultracluster.kubernetes.relay import relay_objects
from ultracluster.kubernetes.releases import releases
from ultracluster.kubernetes.trainer import training_runtimes
from ultracluster.kubernetes.volumes import storage_class, volumes
from ultracluster.kubernetes.webhooks import waits_for


def ordered_parts(environment: EksEnvironment, deployed: DeployedResources) -> tuple[Part, ...]:
    """Releases and objects of an environment, each behind the parts that its `after` names.

    Raises ValueError if two parts have the same name, a part waits for one that does not exist, parts wait for each
    other, or objects do not wait for the release whose webhooks can refuse them.
    """
    parts = (
        *releases(environment, deployed),
        *team_and_queue_objects(environment),
        storage_class(),
        *volumes(environment, deployed),
        *training_runtimes(environment),
        *karpenter_pools(environment, deployed),
        *relay_objects(environment),
        *acceptance_objects(environment),
    )
    ordered: dict[str, Part] = {}
    waiting = {part.name: part for part in parts}
    if len(waiting) < len(parts):
        raise ValueError("two parts have the same name")
    while waiting:
        ready = [part for part in waiting.values() if all(name in ordered for name in part.after)]
        if not ready:
            missing = {name: part.after for name, part in waiting.items()}
            raise ValueError(f"these parts wait for each other or for a part that does not exist: {missing}")
        for part in ready:
            ordered[part.name] = waiting.pop(part.name)
    _check_webhooks(ordered)
    return tuple(ordered.values())


def _check_webhooks(ordered: Mapping[str, Part]) -> None:
    releases = {part.chart.name: name for name, part in ordered.items() if isinstance(part, Release)}
    before: dict[str, set[str]] = {}
    for name, part in ordered.items():
        before[name] = set(part.after).union(*(before[other] for other in part.after))
        if missing := waits_for(part, releases) - before[name]:
            raise ValueError(f"{name} does not wait for the webhooks of {', '.join(sorted(missing))}")
