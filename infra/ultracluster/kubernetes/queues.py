"""Namespaces, access and queues of teams: a set of objects for each team and each node group."""

from ultracluster.config.eks import Team
from ultracluster.kubernetes import kai, kueue, kueue_elastic, volcano
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.quotas import PRIORITIES
from ultracluster.kubernetes.scheduler_charts import RELEASES
from ultracluster.kubernetes.team_policy import service_quota, team_policy
from ultracluster.kubernetes.teams import access, fleet_view, namespace


def team_and_queue_objects(environment: EksEnvironment) -> tuple[Objects, ...]:
    """Namespaces, access and queues of the environment's teams.

    A namespace is retained when its team leaves the file, because it may hold volumes. All other objects are deleted.
    """
    flavors = _flavors(environment)
    return (
        Objects("fleet-view", (fleet_view(environment),)),
        team_policy(environment),
        *_fleet(environment),
        *flavors,
        *_cohort(environment, flavors),
        *(part for team in environment.teams for part in _team(environment, team, flavors)),
        *_elastic(environment),
    )


def _fleet(environment: EksEnvironment) -> tuple[Objects, ...]:
    """Objects of each scheduler for the whole fleet: topologies, priority classes and the parent queue."""
    items: dict[str, tuple[Object, ...]] = {}
    if environment.queue_manager == "kueue":
        topologies = kueue.kueue_topologies(environment) if environment.gang_scheduler == "kueue" else ()
        items["kueue"] = (*topologies, *kueue.priority_classes())
    else:
        items[environment.queue_manager] = _priority_classes()
    if environment.gang_scheduler == "kai":
        admitted = (kai.admitted_queue(environment),) if environment.queue_manager == "kueue" else ()
        queues = (kai.fleet_queue(environment), *admitted)
        items["kai"] = (*items.get("kai", ()), *kai.kai_topologies(environment), *queues)
    return tuple(Objects(f"fleet-{name}", objects, after=(RELEASES[name],)) for name, objects in items.items())


def _flavors(environment: EksEnvironment) -> tuple[Objects, ...]:
    if environment.queue_manager != "kueue":
        return ()
    groups = (kueue.resource_flavor(environment, group) for group in environment.gpu_groups)
    return tuple(map(_flavor, (*kueue.cpu_flavors(environment), *groups)))


def _flavor(flavor: Object) -> Objects:
    return Objects(f"flavor-{flavor['metadata']['name']}".replace(".", "-"), (flavor,), after=("fleet-kueue",))


def _cohort(environment: EksEnvironment, flavors: tuple[Objects, ...]) -> tuple[Objects, ...]:
    """The fleet's cohort, after its flavors: it must stop using a flavor before the flavor is deleted."""
    if environment.queue_manager != "kueue":
        return ()
    after = tuple(flavor.name for flavor in flavors)
    return (Objects("fleet-cohort", (kueue.fleet_cohort(environment),), after=after),)


def _team(environment: EksEnvironment, team: Team, flavors: tuple[Objects, ...]) -> tuple[Objects, Objects, Objects]:
    namespace_set, queue_set = f"namespace-{team.name}", f"{environment.queue_manager}-queue-{team.name}"
    after_queue = (namespace_set, *_before_queues(environment, flavors))
    return (
        Objects(namespace_set, (namespace(environment, team),), retained=True),
        Objects(
            f"access-{team.name}",
            (*access(environment, team), service_quota(team)),
            after=(namespace_set, "fleet-view"),
        ),
        Objects(queue_set, _queues(environment, team), after=after_queue),
    )


def _elastic(environment: EksEnvironment) -> tuple[Objects, ...]:
    """The teams' queues for Karpenter's nodes, after their flavors and their cohort."""
    if environment.queue_manager != "kueue" or not environment.settings.karpenter:
        return ()
    fleet = _elastic_fleet(environment)
    return (
        *fleet,
        *(
            Objects(
                f"kueue-elastic-{team.name}",
                kueue_elastic.elastic_queues(environment, team),
                after=(f"namespace-{team.name}", *(part.name for part in fleet)),
            )
            for team in environment.teams
        ),
    )


def _elastic_fleet(environment: EksEnvironment) -> tuple[Objects, ...]:
    """Flavors and the cohort of Karpenter's pools. A pool of the file is deleted with its flavor."""
    flavors, cohort = kueue_elastic.elastic_flavors(environment), kueue_elastic.elastic_cohort(environment)
    if not environment.settings.pools:
        return (Objects("flavors-elastic", (*flavors, cohort), after=("fleet-kueue",)),)
    sets = tuple(map(_flavor, flavors))
    return (*sets, Objects("cohort-pools", (cohort,), after=tuple(part.name for part in sets)))


def _before_queues(environment: EksEnvironment, flavors: tuple[Objects, ...]) -> tuple[str, ...]:
    """Sets that a team's queue needs. It needs all flavors, since Kueue keeps a flavor as long as a queue names it."""
    if environment.queue_manager == "kueue":
        return (*(flavor.name for flavor in flavors), "fleet-cohort")
    return (f"fleet-{environment.queue_manager}",)


def _queues(environment: EksEnvironment, team: Team) -> tuple[Object, ...]:
    if environment.queue_manager == "kueue":
        return kueue.team_queues(environment, team)
    if environment.queue_manager == "volcano":
        return (volcano.volcano_queue(environment, team),)
    return (kai.team_queue(environment, team),)


def _priority_classes() -> tuple[Object, ...]:
    """Kubernetes' own PriorityClasses, where Kueue does not order the jobs."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Jobs of {name} priority within their team",
        }
        for name, value in PRIORITIES.items()
    )
