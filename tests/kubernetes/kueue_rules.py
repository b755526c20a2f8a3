"""Which flavor Kueue gives to a pod, by the rules of its flavor assigner.

For pods of one set and an idle fleet: node selectors, taints, topologies and quota. Not for preemption.

Source: Kueue 0.19.2, pkg/scheduler/flavorassigner: `checkFlavorForPodSets`, `checkPodSetAndFlavorMatchForTAS`.
"""

from collections.abc import Mapping
from typing import Any

UNITS = {"": 1, "m": 0.001, "Mi": 2**20, "Gi": 2**30}


def amount(quantity: int | str) -> float:
    """A Kubernetes quantity as a number."""
    text = str(quantity)
    digits = text.rstrip("mMGi")
    return float(digits) * UNITS[text[len(digits) :]]


def assigned_flavor(
    queue: Mapping[str, Any],
    flavors: Mapping[str, Mapping[str, Any]],
    requests: Mapping[str, int | str],
    *,
    selector: Mapping[str, str] | None = None,
    topology: str | None = None,
    shared: Mapping[str, Any] | None = None,
) -> str | None:
    """The flavor that `queue` gives a pod with `requests`, or None.

    `topology` is the level of the pod's topology annotation, `shared` the cohort that the queue borrows from.
    """
    (group,) = queue["spec"]["resourceGroups"]
    if not requests.keys() <= set(group["coveredResources"]):
        return None
    only_topologies = all("topologyName" in flavors[entry["name"]]["spec"] for entry in group["flavors"])
    for entry in group["flavors"]:
        spec = flavors[entry["name"]]["spec"]
        with_topology = "topologyName" in spec
        if not only_topologies and with_topology != bool(topology):
            continue
        tolerated = {toleration["key"] for toleration in spec.get("tolerations", ())}
        if any(taint["key"] not in tolerated for taint in spec.get("nodeTaints", ())):
            continue
        labels = spec["nodeLabels"]
        if any(labels[key] != value for key, value in (selector or {}).items() if key in labels):
            continue
        if all(amount(need) <= _room(entry, resource, shared) for resource, need in requests.items()):
            return str(entry["name"])
    return None


def _room(entry: Mapping[str, Any], resource: str, shared: Mapping[str, Any] | None) -> float:
    """What the queue may use of a resource of a flavor: its quota, and what its cohort lends."""
    (own,) = [found for found in entry["resources"] if found["name"] == resource]
    lent = 0.0
    for group in shared["spec"]["resourceGroups"] if shared else ():
        for flavor in group["flavors"]:
            if flavor["name"] == entry["name"]:
                lent += sum(amount(found["nominalQuota"]) for found in flavor["resources"] if found["name"] == resource)
    return amount(own["nominalQuota"]) + min(lent, amount(own.get("borrowingLimit", 2**60)))
