"""Systems Manager: State Manager associations, which moto lacks, and what they do on PCS's nodes.

No instance runs. An association with running targets succeeds at once, if the agents of these may run it; one without
stays Pending. Of the commands of its document, those that add QOS to Slurm's accounting have an effect: PCS then knows
the QOS of the cluster of a targeted compute node group.

Source: Systems Manager API Reference, CreateAssociation; User Guide, "How State Manager works"; AWS managed policy
AmazonSSMManagedInstanceCore (2026).
"""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import unix_time
from moto.ssm.models import SimpleSystemManagerBackend
from moto.ssm.responses import SimpleSystemManagerResponse

from localaws.services.access import refusal, role_caller
from localaws.services.patching import add, patch
from localaws.services.pcs_rules import QOS
from localaws.services.references import References
from localaws.services.service import Refusal

GROUP_TAG = "tag:aws:pcs:compute-node-group-id"
AGENT_ACTIONS = (
    "ssm:UpdateInstanceInformation",
    "ssm:ListInstanceAssociations",
    "ssm:GetDocument",
    "ssm:UpdateInstanceAssociationStatus",
)
"""What the agent of an instance calls to run an association."""

MEMBERS = ("AssociationName", "DocumentVersion", "MaxConcurrency", "MaxErrors", "Name", "Parameters", "Targets")


@add(SimpleSystemManagerResponse, "create_association")
def _create(self: Any) -> ActionResult:
    given = _given(self)
    name = given.get("AssociationName")
    if name and any(each.get("AssociationName") == name for each in _stored(self).values()):
        raise Refusal("AssociationAlreadyExists", f"An association with name {name} already exists")
    key = str(uuid.uuid4())
    for tag in self._get_param("Tags") or ():
        self.ssm_backend._resource_tags["Association"][key][tag["Key"]] = tag["Value"]
    return _ran(self, {"AssociationId": key, "AssociationVersion": "1", "Date": unix_time(), **given})


@add(SimpleSystemManagerResponse, "update_association")
def _update(self: Any) -> ActionResult:
    """What the call leaves out is removed, and the association runs again."""
    old = _found(self)
    kept = {name: old[name] for name in ("AssociationId", "Date", "Name")}
    return _ran(
        self, {**kept, "AssociationVersion": str(int(old["AssociationVersion"]) + 1), **_given(self, old["Name"])}
    )


@add(SimpleSystemManagerResponse, "describe_association")
def _describe(self: Any) -> ActionResult:
    return ActionResult({"AssociationDescription": _found(self)})


@add(SimpleSystemManagerResponse, "delete_association")
def _delete(self: Any) -> ActionResult:
    del _stored(self)[_found(self)["AssociationId"]]
    return ActionResult({})


@patch(SimpleSystemManagerBackend, "_validate_resource_type_and_id")
def _resource_id(original: Any, self: Any, resource_type: str, resource_id: str) -> Any:
    """Associations have tags."""
    if resource_type == "Association" and resource_id in self.__dict__.get("associations", {}):
        return resource_id
    return original(self, resource_type, resource_id)


def _given(self: Any, document: str = "") -> dict[str, Any]:
    """The members of the request. Refusal for a document that does not exist, and parameters that it does not take."""
    given = {name: value for name in MEMBERS if (value := self._get_param(name)) is not None}
    content = _content(self, given.setdefault("Name", document), given.get("DocumentVersion"))
    declared = content.get("parameters", {})
    for name, values in (given.get("Parameters") or {}).items():
        pattern = declared.get(name, {}).get("allowedPattern", "")
        if name not in declared or not all(re.search(pattern, value) for value in values):
            raise Refusal("InvalidParameters", f"Parameter {name} is not declared in the document, or not as it allows")
    if missing := sorted(
        name for name, each in declared.items() if "default" not in each and name not in given.get("Parameters", {})
    ):
        raise Refusal("InvalidParameters", f"Parameters {', '.join(missing)} must be provided in the request.")
    return given


def _content(self: Any, name: str, version: str | None) -> dict[str, Any]:
    documents = self.ssm_backend._documents.get(name)
    if documents is None:
        raise Refusal("InvalidDocument", f"Document with name {name} does not exist.")
    content = documents.find(None if version == "$DEFAULT" else version).content
    return content if isinstance(content, dict) else dict(json.loads(content))


def _ran(self: Any, association: dict[str, Any]) -> ActionResult:
    """Stores the association after its first run."""
    content = _content(self, association["Name"], association.get("DocumentVersion"))
    commands = [line for step in content.get("mainSteps", ()) for line in step.get("inputs", {}).get("runCommand", ())]
    references = References(self.current_account, self.region, self.ssm_backend.partition)
    document = f"arn:{references.partition}:ssm:{references.region}:{references.account}:document/{association['Name']}"
    statuses = [_run(references, group, document, commands) for group in _groups(references, association)]
    status = next((each for each in ("Failed", "Pending") if each in statuses), "Success" if statuses else "Pending")
    association["Overview"] = {"Status": status, "DetailedStatus": status}
    _stored(self)[association["AssociationId"]] = association
    return ActionResult({"AssociationDescription": association})


def _groups(references: References, association: dict[str, Any]) -> Iterator[Any]:
    """The targeted compute node groups of PCS that have instances."""
    wanted = {
        value for target in association.get("Targets") or () if target["Key"] == GROUP_TAG for value in target["Values"]
    }
    for item in references.backend("pcs").items:
        running = item.kind.noun == "ComputeNodeGroup" and item["scalingConfiguration"]["minInstanceCount"]
        if running and item.id in wanted:
            yield item


def _run(references: References, group: Any, document: str, commands: list[str]) -> str:
    """Status of a run on the instances of a compute node group."""
    profile = references.instance_profile(group["iamInstanceProfileArn"])
    caller = role_caller(references, profile.roles[0], "i-1")
    for action in AGENT_ACTIONS:
        if refusal(references, caller, action, document if action == "ssm:GetDocument" else None):
            return "Pending"  # the agent does not learn of it
    added = re.findall(r"(?m)\bsacctmgr\b[^\n;|&]*\badd\s+qos\s+([\w-]+)", "\n".join(commands))
    cluster = group.parent
    if added and cluster["slurmConfiguration"]["accounting"]["mode"] != "STANDARD":
        return "Failed"
    cluster.owned[QOS] |= set(added)
    return "Success"


def _stored(self: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = self.ssm_backend.__dict__.setdefault("associations", {})
    return found


def _found(self: Any) -> dict[str, Any]:
    association = _stored(self).get(self._get_param("AssociationId"))
    if association is None:
        raise Refusal("AssociationDoesNotExist", "The specified association does not exist.")
    return association
