"""How teams share the fleet, as sets of objects that come and go with a team or a node group."""

from ultracluster.config.eks import Eks, Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.kubernetes import kai, kueue, volcano
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.schedulers import RELEASES
from ultracluster.kubernetes.shares import PRIORITIES
from ultracluster.kubernetes.teams import access, fleet_view, namespace


def scheduling(environment: Environment) -> tuple[Objects, ...]:
    """Namespaces, access and queues of an EKS environment's teams; nothing without an EKS control plane.

    A namespace stays when its team leaves the file, for there may be volumes in it; all else goes.
    """
    settings = environment.control_plane
    if not isinstance(settings, Eks):
        return ()
    flavors = _flavors(environment, settings)
    return (
        Objects("fleet-view", (fleet_view(settings),)),
        *_fleet(environment, settings),
        *flavors,
        *_cohort(environment, settings, flavors),
        *(part for team in settings.teams for part in _team(environment, team, settings, flavors)),
    )


def _fleet(environment: Environment, settings: Eks) -> tuple[Objects, ...]:
    """What the whole fleet has of each scheduler that runs: topologies, classes of priority, a queue above all."""
    items: dict[str, tuple[Object, ...]] = {}
    if settings.queues_with == "kueue":
        topologies = kueue.kueue_topologies(environment) if settings.places_with == "kueue" else ()
        items["kueue"] = (*topologies, *kueue.priority_classes())
    else:
        items[settings.queues_with] = _priority_classes()
    if settings.places_with == "kai":
        admitted = (kai.admitted_queue(environment),) if settings.queues_with == "kueue" else ()
        queues = (kai.fleet_queue(environment), *admitted)
        items["kai"] = (*items.get("kai", ()), *kai.kai_topologies(environment), *queues)
    return tuple(Objects(f"fleet-{name}", objects, after=(RELEASES[name],)) for name, objects in items.items())


def _flavors(environment: Environment, settings: Eks) -> tuple[Objects, ...]:
    if settings.queues_with != "kueue":
        return ()
    return tuple(_flavor(group, settings) for group in environment.node_groups)


def _flavor(group: NodeGroup, settings: Eks) -> Objects:
    flavor = kueue.resource_flavor(group, settings)
    return Objects(f"flavor-{flavor['metadata']['name']}".replace(".", "-"), (flavor,), after=("fleet-kueue",))


def _cohort(environment: Environment, settings: Eks, flavors: tuple[Objects, ...]) -> tuple[Objects, ...]:
    """Behind its flavors, so that it lets go of them before they are deleted."""
    if settings.queues_with != "kueue":
        return ()
    after = tuple(flavor.name for flavor in flavors)
    return (Objects("fleet-cohort", (kueue.fleet_cohort(environment, settings),), after=after),)


def _team(
    environment: Environment, team: Team, settings: Eks, flavors: tuple[Objects, ...]
) -> tuple[Objects, Objects, Objects]:
    home, queue = f"namespace-{team.name}", f"{settings.queues_with}-queue-{team.name}"
    return (
        Objects(home, (namespace(team),), retained=True),
        Objects(f"access-{team.name}", access(environment, team, settings), after=(home, "fleet-view")),
        Objects(queue, _queues(environment, team, settings), after=(home, *_behind(settings, flavors))),
    )


def _behind(settings: Eks, flavors: tuple[Objects, ...]) -> tuple[str, ...]:
    """What a team's queue needs: all flavors, since a queue that lost one would hold it."""
    if settings.queues_with == "kueue":
        return (*(flavor.name for flavor in flavors), "fleet-cohort")
    return (f"fleet-{settings.queues_with}",)


def _queues(environment: Environment, team: Team, settings: Eks) -> tuple[Object, ...]:
    if settings.queues_with == "kueue":
        return kueue.team_queues(environment, team, settings)
    if settings.queues_with == "volcano":
        return (volcano.volcano_queue(environment, team, settings),)
    return (kai.team_queue(environment, team),)


def _priority_classes() -> tuple[Object, ...]:
    """Kubernetes' own classes, where no Kueue orders the jobs."""
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
