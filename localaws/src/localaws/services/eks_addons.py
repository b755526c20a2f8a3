"""Add-ons, pod identity associations and capabilities of the embedded EKS."""

import json
import re
import secrets
import string
import uuid
from collections.abc import Mapping
from typing import Any, cast

from localaws.services.eks_clusters import CLUSTER
from localaws.services.eks_store import Cluster, in_use, invalid
from localaws.services.kubernetes import ADD_ONS
from localaws.services.store import Call, Item, Kind, Rule
from localaws.services.trust import POD_ACTIONS, PODS, allows_service, pod_problem

ADD_ON_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")

# add-ons


def _addon(call: Call) -> None:
    """The associations of an add-on are shown by their ARNs."""
    call.new["podIdentityAssociations"] = call.old.get("podIdentityAssociations", [])
    call.new.setdefault("path", str(uuid.uuid4()))


def _install(call: Call) -> None:
    _own(call)
    cast("Cluster", call.within).kubernetes.add_on(call.target.id, _namespace(call))


def _uninstall(call: Call) -> None:
    call.store.remove(*_owned(call))
    cast("Cluster", call.within).kubernetes.add_ons.discard(call.target.id)


def _own(call: Call) -> None:
    """Create the associations of the request in place of the add-on's old ones. An empty list removes them."""
    wanted = call.request.get("podIdentityAssociations")
    if wanted is None:
        return
    call.store.remove(*_owned(call))
    made = [_new_association(call, asked) for asked in wanted]
    call.target.description["podIdentityAssociations"] = [item.arn for item in made]


def _new_association(call: Call, asked: dict[str, str]) -> Item:
    more = {"clusterName": call.within.id, "namespace": _namespace(call), "ownerArn": call.target.arn}
    pod = Call(call.store, "CreatePodIdentityAssociation", "Create", POD, asked, call.parent, None, {**asked, **more})
    _external_id(pod)
    return call.store.add(POD, _association_id(pod), {**POD.defaults, **pod.new}, call.parent)


def _owned(call: Call) -> list[Item]:
    owner = call.target.arn if call.item else None
    pods = [item for item in call.siblings if item.kind is POD]
    return [item for item in pods if owner and item.description.get("ownerArn") == owner]


def _namespace(call: Call) -> str:
    asked = call.new.get("namespaceConfig") or {}
    return str(asked.get("namespace") or ADD_ONS[call.new["addonName"]]["namespaces"][0])


ADDON = Kind(
    noun="Addon",
    address="addonName",
    arn="addon/{clusterName}/{addonName}/{path}",
    parent=CLUSTER,
    active="Create Update Delete",
    defaults={"owner": "aws", "publisher": "eks"},
    describe=_addon,
    made=_install,
    changed=_own,
    removed=_uninstall,
    missing="No add-on {id} found in cluster {parent}.",
    taken="Addon already exists: {id}.",
)


def _known(call: Call) -> None:
    request = call.request
    if request["addonName"] not in ADD_ONS:
        raise invalid(f"Addon {request['addonName']} specified is not supported.")
    version = request.get("addonVersion")
    if version and not ADD_ON_VERSION.fullmatch(version):
        raise invalid(f"Addon version specified is not supported: {version}.")
    if role := request.get("serviceAccountRoleArn"):
        _role(call, role)
    if (values := request.get("configurationValues")) and not isinstance(_parsed(values), dict):
        raise invalid("ConfigurationValue is not in valid JSON format: an object is needed.")


def _associations(call: Call) -> None:
    wanted, owned = call.request.get("podIdentityAssociations") or [], _owned(call)
    for asked in wanted:
        _check_free(call, _namespace(call), asked["serviceAccount"], owned)
        _check_identity(call, asked, (_namespace(call), asked["serviceAccount"]))
    if len({asked["serviceAccount"] for asked in wanted}) < len(wanted):
        name = call.new["addonName"]
        raise invalid(f"Addon {name} has two pod identity associations for one service account.")


# pod identity associations


def _association_id(_: Call) -> str:
    return "a-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(17))


def _external_id(call: Call) -> None:
    """An id for a role of another account; "" removes role and policy."""
    if call.item is None and call.request.get("targetRoleArn"):
        call.new["externalId"] = str(uuid.uuid4())
    for name in ("targetRoleArn", "policy"):
        if call.new.get(name) == "":
            del call.new[name]


def _in_place(call: Call, item: Item) -> bool:
    return all(item[name] == call.request.get(name, item[name]) for name in ("namespace", "serviceAccount"))


POD = Kind(
    noun="PodIdentityAssociation",
    address="associationId",
    new_id=_association_id,
    arn="podidentityassociation/{clusterName}/{associationId}",
    parent=CLUSTER,
    active="Create",
    defaults={"disableSessionTags": False},
    describe=_external_id,
    listed=_in_place,
    missing="No pod identity association {id} found in cluster {parent}.",
)


def _free(call: Call) -> None:
    _check_free(call, call.request["namespace"], call.request["serviceAccount"], [])


def _check_free(call: Call, namespace: str, account: str, replaced: list[Item]) -> None:
    for item in call.siblings:
        place = item.description.get("namespace"), item.description.get("serviceAccount")
        if item.kind is POD and item not in replaced and place == (namespace, account):
            raise in_use(f"Association already exists: {item.id}.")


def _check_identity(call: Call, asked: Mapping[str, Any], place: tuple[str, str]) -> None:
    """The role trusts EKS Pod Identity, also for the service account of `place`, which EKS itself does not check."""
    role = _role(call, asked["roleArn"])
    if not allows_service(role, PODS, *POD_ACTIONS):
        raise invalid(f"Trust policy of role {role.arn} does not let {PODS} do {' and '.join(POD_ACTIONS)}.")
    if problem := pod_problem(role, call.within.arn, *place):
        raise invalid(
            f"EKS would create this association, but pods of service account {'/'.join(place)} would get no "
            f"credentials of role {role.arn}: its trust policy does not let {PODS} do {problem}."
        )
    if asked.get("policy"):
        if not isinstance(_parsed(asked["policy"]), dict):
            raise invalid("policy is not a JSON document.")
        if not asked.get("disableSessionTags"):
            raise invalid("When a policy is specified, disableSessionTags must be true.")


# capabilities


def _capability(call: Call) -> None:
    call.new.setdefault("path", f"{call.new['type'].lower()}/{call.new['capabilityName']}/{uuid.uuid4()}")


CAPABILITY = Kind(
    noun="Capability",
    address="capabilityName",
    arn="capability/{clusterName}/{path}",
    parent=CLUSTER,
    active="Create",
    defaults={"version": "v1"},
    describe=_capability,
    missing="No capability {id} found in cluster {parent}.",
    taken="Cluster {parent} has the {existing[type]} capability {existing[capabilityName]}.",
)


def _one_of_a_type(call: Call) -> None:
    kind, configuration = call.new["type"], call.request.get("configuration") or {}
    for other in call.others:
        if other["type"] == kind:
            raise in_use(f"Cluster {call.within.id} has the {kind} capability {other.id}.")
    fitting = {"ACK": {"ack"}, "ARGOCD": {"argoCd"}, "KRO": set()}[kind]
    if configuration.keys() - fitting or (kind == "ARGOCD" and not configuration):
        raise invalid(f"configuration of a capability of type {kind} must hold {', '.join(fitting) or 'nothing'}.")


def _argo_cd(call: Call) -> None:
    if (call.request.get("configuration") or {}).get("argoCd"):
        raise invalid("The embedded AWS does not change the configuration of Argo CD.")


def _capability_role(call: Call) -> None:
    arn = call.request.get("roleArn")
    if arn and not allows_service(_role(call, arn), "capabilities.eks.amazonaws.com", *POD_ACTIONS):
        raise invalid(f"Role {arn} does not let capabilities.eks.amazonaws.com do {' and '.join(POD_ACTIONS)}.")


def _role(call: Call, arn: str) -> Any:
    role = call.references.role(arn)
    if role is None:
        raise invalid(f"Role {arn} provided in the request does not exist.")
    return role


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


RULES = (
    Rule("CreateAddon UpdateAddon", _known, "API Reference, CreateAddon"),
    Rule("CreateAddon UpdateAddon", _associations, "API Reference, AddonPodIdentityAssociations"),
    Rule("CreatePodIdentityAssociation", _free, "API Reference, CreatePodIdentityAssociation"),
    Rule(
        "CreatePodIdentityAssociation UpdatePodIdentityAssociation",
        lambda call: _check_identity(call, call.new, (call.new["namespace"], call.new["serviceAccount"])),
        "User Guide, assign an IAM role to a Kubernetes service account",
    ),
    Rule("CreateCapability", _one_of_a_type, "API Reference, CreateCapability"),
    Rule("UpdateCapability", _argo_cd, "not in the embedded AWS"),
    Rule("CreateCapability UpdateCapability", _capability_role, "User Guide, capability IAM role"),
)
