"""The first deployment of each stack fails half way and at its end: it rolls back, and can be tried again."""

import json
from functools import cache, partial

import pytest

from localaws import faults
from localaws.templates import declarations
from tests.deployment.in_process import ORDER, client, prepared
from tests.deployment.leftovers import found
from tests.synthesis import templates

IAM = ["CAPABILITY_NAMED_IAM"]


def places(template):
    """Logical ids in the order of creation: one half way, and the last one."""
    order = list(declarations(template, {}))
    return {order[len(order) // 2], order[-1]}


def documented(kind, name):
    """Whether docs/operations.md lists it under "A first deployment fails"."""
    access_logs = kind == "bucket" and "accesslogs" in name
    eks_logs = kind == "log group" and name.startswith("/aws/eks/")
    return access_logs or eks_logs


def test_access_logs_would_stop_a_roll_back_that_deletes_their_bucket():
    """Why that bucket is retained always."""
    with prepared("dev") as environment:
        cloudformation = client(environment, "cloudformation")
        stacks = templates("dev")
        for resource in stacks["storage"]["Resources"].values():
            if resource.get("DeletionPolicy") == "Retain":
                resource["DeletionPolicy"] = "RetainExceptOnCreate"
        faults.inject("quota-exceeded", "AWS::FSx::FileSystem")
        for part in ("network", "storage"):
            body = json.dumps(stacks[part])
            cloudformation.create_stack(StackName=f"dev-{part}", TemplateBody=body, Capabilities=IAM)
        events = cloudformation.describe_stack_events(StackName="dev-storage")["StackEvents"]
        assert events[0]["ResourceStatus"] == "ROLLBACK_FAILED"
        (stuck,) = [event for event in events if event["ResourceStatus"] == "DELETE_FAILED"]
        assert stuck["LogicalResourceId"].startswith("AccessLogs")
        assert "BucketNotEmpty" in stuck["ResourceStatusReason"]


@pytest.mark.parametrize("name", ["dev", "staging"])
def test_a_creation_that_fails_anywhere_rolls_back_and_leaves_what_docs_list(name):
    with prepared(name) as environment:
        clients = cache(partial(client, environment))
        cloudformation = clients("cloudformation")
        for part in [part for part in ORDER if part in templates(name)]:
            stack, template = f"{environment.name}-{part}", templates(name)[part]
            body = {"StackName": stack, "TemplateBody": json.dumps(template), "Capabilities": IAM}
            for logical_id in places(template):
                before = found(clients)
                faults.inject("access-denied", logical_id)
                cloudformation.create_stack(**body)
                (failed,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
                assert failed["StackStatus"] == "ROLLBACK_COMPLETE", (logical_id, failed)
                left = found(clients) - before
                assert [row for row in left if not documented(*row)] == [], (part, logical_id)
                cloudformation.delete_stack(StackName=stack)
            cloudformation.create_stack(**body)
            (made,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
            assert made["StackStatus"] == "CREATE_COMPLETE", made
