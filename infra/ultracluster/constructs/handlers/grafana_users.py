"""Gives groups of IAM Identity Center their roles in a Grafana workspace. Groups that others added keep theirs."""

import logging
from typing import Any

import boto3
import cfnresponse

ROLES = {"Admins": "ADMIN", "Editors": "EDITOR"}
BATCH = 20


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The workspace takes its users along when it is deleted."""
    new, old = event["ResourceProperties"], event.get("OldResourceProperties", {})
    workspace = new["WorkspaceId"]
    try:
        if event["RequestType"] != "Delete":
            assign(boto3.client("grafana"), workspace, roles(old), roles(new))
    except Exception as error:
        logging.exception("Grafana users")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, workspace, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, workspace)


def roles(properties: dict[str, Any]) -> dict[str, str]:
    """The role of each group."""
    return {group: role for name, role in ROLES.items() for group in properties.get(name, [])}


def assign(grafana: Any, workspace: str, old: dict[str, str], new: dict[str, str]) -> None:
    """Adds and changes roles first, then revokes those of groups that left, so that an admin always remains.

    Roles that are in force already are not sent again.
    """
    pages = grafana.get_paginator("list_permissions").paginate(workspaceId=workspace)
    now = {each["user"]["id"]: each["role"] for page in pages for each in page["permissions"]}
    gone = {group: now[group] for group in old if group not in new and group in now}
    wanted = {group: role for group, role in new.items() if now.get(group) != role}
    # a user has one role: the former one is revoked before another is added
    changed = {group: now[group] for group in wanted if group in now}
    for action, groups in (("REVOKE", changed), ("ADD", wanted), ("REVOKE", gone)):
        send(grafana, workspace, action, groups)


def send(grafana: Any, workspace: str, action: str, groups: dict[str, str]) -> None:
    """Sends instructions, at most 20 at a time. RuntimeError with the errors that the service lists."""
    steps = [
        {"action": action, "role": role, "users": [{"id": group, "type": "SSO_GROUP"}]}
        for group, role in groups.items()
    ]
    for i in range(0, len(steps), BATCH):
        errors = grafana.update_permissions(workspaceId=workspace, updateInstructionBatch=steps[i : i + BATCH])[
            "errors"
        ]
        if errors:
            found = "; ".join(f"{each['causedBy']['users'][0]['id']}: {each['message']}" for each in errors)
            raise RuntimeError(f"Grafana did not {action.lower()} roles: {found}")
