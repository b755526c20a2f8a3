"""The code that fills a Grafana workspace, against a real HTTP server and the embedded AWS, failures included."""

import json
import sys
from importlib import import_module
from types import SimpleNamespace
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import ClientError

from localaws import accounts, local_aws
from tests.constructs.grafana_server import REGION, served
from tests.constructs.test_handlers import Answers
from ultracluster.constructs.handlers import grafana_content

PLUGIN = "grafana-amazonprometheus-datasource"
SOURCE = {"uid": "dev-metrics", "name": "dev metrics", "type": PLUGIN, "access": "proxy", "url": "https://amp/"}
CONTEXT = SimpleNamespace(
    log_group_name="/aws/lambda/grafana", log_stream_name="1", get_remaining_time_in_millis=lambda: 900_000
)
FLEET, NODES = (
    {"uid": f"dev-{name}", "title": name, "tags": ["environment:dev"], "panels": []} for name in ("fleet", "nodes")
)


@pytest.fixture
def account(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", accounts.access_key(accounts.DEFAULT))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", accounts.SECRET)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with local_aws():
        yield boto3.client("iam").create_role(RoleName="grafana", AssumeRolePolicyDocument="{}")["Role"]["Arn"]


class Served:
    """A workspace and the folder of dashboards beside the code."""

    def __init__(self, workspace, url, folder):
        self.workspace, self.url, self.folder = workspace, url, folder

    def put(self, *dashboards):
        for file in self.folder.glob("*.json"):
            file.unlink()
        for dashboard in dashboards:
            (self.folder / f"{dashboard['uid']}.json").write_text(json.dumps(dashboard), "utf-8")

    def run(self, request, *, earlier=None, seconds=900, **changes):
        """Runs the function, which has `seconds`. Returns the status and reason that CloudFormation got.

        `id` is the physical id of the last response, which CloudFormation sends with later requests.
        """
        properties = {
            "WorkspaceId": self.workspace.id,
            "Url": self.url,
            "Owned": "false",
            "Plugins": [PLUGIN],
            "DataSources": [json.dumps(SOURCE)],
            "FolderUid": "dev",
            "FolderTitle": "UltraCluster dev",
            "UidPrefix": "dev-",
            "Tag": "environment:dev",
            "Dashboards": sorted(file.stem for file in self.folder.glob("*.json")),
            **changes,
        }
        ids = {"StackId": "stack", "RequestId": "1", "LogicalResourceId": "Content"}
        event = {"RequestType": request, "ResourceProperties": properties, "ResponseURL": f"{self.url}/response", **ids}
        if request != "Create":
            event["PhysicalResourceId"] = getattr(self, "id", f"{self.workspace.id}/dev")
        if earlier is not None:
            event["OldResourceProperties"] = {**properties, "Dashboards": earlier}
        context = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: seconds * 1000})
        with patch.object(grafana_content, "FOLDER", self.folder), patch("time.sleep"):
            grafana_content.handler(event, context)
        answer = self.workspace.responses.pop()
        self.step = answer["Data"].get("ManualStep")
        end = "/incomplete" if request == "Create" and answer["Status"] == "FAILED" else ""
        expected = event["PhysicalResourceId"] if request == "Delete" else f"{properties['WorkspaceId']}/dev{end}"
        self.id = answer["PhysicalResourceId"]
        assert self.id == expected
        assert {name: answer[name] for name in ids} == ids
        return answer["Status"], answer["Reason"]

    def dashboards(self):
        return set(self.workspace.inside.get("dashboards", {}))


@pytest.fixture
def grafana(account, tmp_path):
    with served(account) as (workspace, url):
        found = Served(workspace, url, tmp_path)
        found.put(FLEET, NODES)
        yield found


def test_create_installs_the_plugin_and_adds_sources_folder_and_dashboards(grafana):
    assert grafana.run("Create")[0] == "SUCCESS"
    inside = grafana.workspace.inside
    assert set(inside["plugins"]) == {PLUGIN}
    assert inside["sources"] == {"dev-metrics": SOURCE}
    assert inside["folders"] == {"dev": {"uid": "dev", "title": "UltraCluster dev"}}
    assert {uid: each["folderUid"] for uid, each in inside["dashboards"].items()} == {
        "dev-fleet": "dev",
        "dev-nodes": "dev",
    }
    assert grafana.workspace.accounts == {}


def test_an_update_replaces_dashboards_and_deletes_those_that_are_gone_but_no_copy(grafana):
    grafana.run("Create")
    dashboards = grafana.workspace.inside["dashboards"]
    for uid, tags in (("my-copy", ["environment:dev"]), ("dev-mine", [])):
        stored = {"uid": uid, "title": uid, "tags": tags}
        dashboards[uid] = {"folderUid": "dev", "version": 1, "dashboard": stored}
    grafana.put({**FLEET, "title": "the whole fleet"})
    changed = json.dumps({**SOURCE, "url": "https://amp/other/"})
    assert grafana.run("Update", DataSources=[changed])[0] == "SUCCESS"
    assert grafana.dashboards() == {"dev-fleet", "my-copy", "dev-mine"}
    assert dashboards["dev-fleet"]["dashboard"]["title"] == "the whole fleet"
    assert grafana.workspace.inside["sources"]["dev-metrics"]["url"] == "https://amp/other/"
    assert grafana.workspace.accounts == {}


def test_running_again_changes_nothing_but_versions(grafana):
    grafana.run("Create")
    before = {name: set(kept) for name, kept in grafana.workspace.inside.items()}
    assert grafana.run("Update")[0] == "SUCCESS"
    assert {name: set(kept) for name, kept in grafana.workspace.inside.items()} == before


def test_delete_empties_an_existing_workspace(grafana):
    grafana.run("Create")
    assert grafana.run("Delete")[0] == "SUCCESS"
    inside = grafana.workspace.inside
    assert (inside["sources"], inside["folders"], inside["dashboards"]) == ({}, {}, {})
    assert grafana.workspace.accounts == {}


def test_delete_leaves_a_folder_that_somebody_else_uses(grafana):
    grafana.run("Create")
    stored = {"uid": "my-copy", "title": "a", "tags": []}
    grafana.workspace.inside["dashboards"]["my-copy"] = {"folderUid": "dev", "version": 1, "dashboard": stored}
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert grafana.dashboards() == {"my-copy"}
    assert set(grafana.workspace.inside["folders"]) == {"dev"}


def test_delete_leaves_a_folder_with_alert_rules_that_somebody_made(grafana):
    """Grafana 12 deletes no folder with alert rules (folder.not-empty), and its search does not find them."""
    grafana.run("Create")
    grafana.workspace.inside["rules"] = {"mine": {"folderUid": "dev"}}
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert set(grafana.workspace.inside["folders"]) == {"dev"}
    assert grafana.dashboards() == set()


def test_delete_twice_succeeds(grafana):
    grafana.run("Create")
    grafana.run("Delete")
    assert grafana.run("Delete")[0] == "SUCCESS"


def search_finds(grafana, *uids):
    """Has searches list exactly these dashboards, as an index that lags behind does."""
    answer = grafana.workspace.answer

    def late(method, target, headers, body):
        status, found = answer(method, target, headers, body)
        return (status, [{"uid": uid} for uid in uids]) if "/api/search" in target else (status, found)

    grafana.workspace.answer = late


def test_what_a_search_does_not_list_yet_is_deleted(grafana):
    grafana.run("Create")
    search_finds(grafana)
    grafana.put(FLEET)
    assert grafana.run("Update", earlier=["dev-fleet", "dev-nodes"])[0] == "SUCCESS"
    assert grafana.dashboards() == {"dev-fleet"}
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert (grafana.workspace.inside["folders"], grafana.dashboards()) == ({}, set())


def test_what_a_search_still_lists_after_its_deletion_keeps_no_folder(grafana):
    grafana.run("Create")
    search_finds(grafana, "dev-fleet", "dev-gone")
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert grafana.workspace.inside["folders"] == {}


def test_delete_of_an_owned_workspace_makes_no_call(grafana):
    assert grafana.run("Delete", Owned="true")[0] == "SUCCESS"
    assert grafana.workspace.calls == []


def test_delete_succeeds_when_the_workspace_is_gone(grafana):
    boto3.client("grafana").delete_workspace(workspaceId=grafana.workspace.id)
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert grafana.workspace.calls == []


CALLS = [
    "GET /api/org",
    f"GET /api/plugins/{PLUGIN}/settings",
    f"POST /api/plugins/{PLUGIN}/install",
    "PUT /api/datasources/uid/dev-metrics",
    "POST /api/datasources$",
    "GET /api/folders/dev",
    "POST /api/folders",
    "POST /api/dashboards/db",
    "GET /api/search",
]
"""Every kind of call that Create makes."""


def test_create_makes_no_other_calls(grafana):
    grafana.run("Create")
    assert [call for call in grafana.workspace.calls if not any(known.strip("$") in call for known in CALLS)] == []


@pytest.mark.parametrize("call", [call for call in CALLS if "/install" not in call])
def test_a_call_that_is_refused_fails_the_deployment_and_leaves_no_token(grafana, call):
    grafana.workspace.faults.append((call, 403))
    status, reason = grafana.run("Create")
    assert status == "FAILED"
    assert f"with 403 {json.dumps({'message': 'a fault of the test'})}" in reason
    assert call.strip("$") in reason
    assert grafana.workspace.accounts == {}


def test_what_a_failed_creation_left_is_deleted(grafana):
    grafana.workspace.faults.append(("POST /api/dashboards/db", 403))
    assert grafana.run("Create")[0] == "FAILED"
    assert grafana.run("Delete")[0] == "SUCCESS"
    assert (grafana.workspace.inside["sources"], grafana.workspace.inside["folders"]) == ({}, {})


def test_a_creation_that_fails_for_good_can_be_rolled_back_and_a_deletion_says_that_it_fails(grafana):
    assert grafana.run("Create")[0] == "SUCCESS"
    grafana.workspace.faults += [("GET /api/org", 403)] * 3
    assert grafana.run("Delete")[0] == "FAILED"
    assert grafana.run("Create")[0] == "FAILED"
    assert grafana.run("Delete")[0] == "SUCCESS"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", [429, 503])
def test_a_call_that_is_throttled_or_not_ready_is_made_again(grafana, call, code):
    grafana.workspace.faults += [(call, code), (call, code)]
    assert grafana.run("Create")[0] == "SUCCESS"
    assert grafana.dashboards() == {"dev-fleet", "dev-nodes"}
    assert grafana.workspace.accounts == {}


def test_a_new_token_may_take_a_moment_to_work(grafana):
    grafana.workspace.faults += [("GET /api/org", 401)] * 3
    assert grafana.run("Create")[0] == "SUCCESS"


def test_a_token_that_stops_working_is_not_waited_for(grafana):
    grafana.workspace.faults.append(("POST /api/folders", 401))
    status, reason = grafana.run("Create")
    assert (status, "POST /api/folders with 401" in reason) == ("FAILED", True)
    assert grafana.workspace.accounts == {}


def test_a_workspace_that_never_answers_fails_and_leaves_no_token(grafana):
    grafana.workspace.faults += [("GET /api/org", 503)] * grafana_content.ATTEMPTS
    status, reason = grafana.run("Create")
    assert (status, "GET /api/org with 503" in reason) == ("FAILED", True)
    assert grafana.workspace.accounts == {}


def test_the_function_gives_up_before_its_time_ends(grafana):
    grafana.workspace.faults += [("POST /api/folders", 503)] * grafana_content.ATTEMPTS
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds + grafana_content.TIMEOUT_SECONDS

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    with patch.object(grafana_content, "time", clock):
        status, reason = grafana.run("Create")
    assert (status, "no time is left to try POST /api/folders again" in reason) == ("FAILED", True)
    assert "503" in reason
    assert now[0] <= 900 - grafana_content.LAST_SECONDS + grafana_content.TIMEOUT_SECONDS
    assert grafana.workspace.accounts == {}


def test_a_function_without_time_makes_no_call(grafana):
    status, reason = grafana.run("Create", seconds=grafana_content.LAST_SECONDS)
    assert (status, "no time is left" in reason, grafana.workspace.calls) == ("FAILED", True, [])
    assert grafana.workspace.accounts == {}


def test_an_unreachable_host_fails_and_leaves_no_token(grafana):
    status, reason = "", ""
    with patch.object(grafana_content, "ATTEMPTS", 2):
        status, reason = grafana.run("Create", Url="http://127.0.0.1:1")
    assert (status, "GET /api/org with" in reason) == ("FAILED", True)
    assert grafana.workspace.accounts == {}


def test_an_account_that_a_stopped_call_left_is_deleted_first(grafana):
    client = boto3.client("grafana")
    left = {"workspaceId": grafana.workspace.id, "name": "ultracluster-dev", "grafanaRole": "ADMIN"}
    client.create_workspace_service_account(**left)
    assert grafana.run("Create")[0] == "SUCCESS"
    assert grafana.workspace.accounts == {}


def test_the_token_is_short_lived_and_of_an_admin(grafana):
    seen = []
    provide = grafana_content.provide

    def look(api, properties, earlier):
        (account,) = grafana.workspace.accounts.values()
        (token,) = account["tokens"].values()
        seen.append((account["grafanaRole"], (token["expiresAt"] - token["createdAt"]).total_seconds()))
        return provide(api, properties, earlier)

    with patch.object(grafana_content, "provide", look):
        grafana.run("Create")
    assert seen == [("ADMIN", 900)]


def test_a_plugin_that_never_loads_is_a_step_for_a_person(grafana):
    with patch.object(grafana_content, "ATTEMPTS", 2):
        grafana.workspace.faults += [(f"GET /api/plugins/{PLUGIN}", 404)] * 3
        assert grafana.run("Create")[0] == "SUCCESS"
    assert "did not load the plugin" in grafana.step


def test_nothing_is_left_to_do_after_a_create(grafana):
    grafana.run("Create")
    assert grafana.step == "none"


def test_a_plugin_that_somebody_installs_meanwhile_is_fine(grafana):
    grafana.workspace.inside["plugins"] = {PLUGIN: True}
    grafana.workspace.faults.append((f"GET /api/plugins/{PLUGIN}", 404))
    assert grafana.run("Create")[0] == "SUCCESS"


@pytest.mark.parametrize("code", [400, 403, 404])
def test_a_workspace_that_refuses_the_plugin_gets_everything_else_and_says_what_to_do(grafana, code):
    grafana.workspace.faults.append((f"POST /api/plugins/{PLUGIN}/install", code))
    assert grafana.run("Create")[0] == "SUCCESS"
    assert f"Install the plugin {PLUGIN}" in grafana.step
    assert "Administration, Plugins" in grafana.step
    assert (set(grafana.workspace.inside["sources"]), grafana.dashboards()) == (
        {"dev-metrics"},
        {"dev-fleet", "dev-nodes"},
    )


def test_without_plugin_management_the_step_says_so(grafana):
    grafana.workspace.backend.configurations[grafana.workspace.id]["plugins"]["pluginAdminEnabled"] = False
    assert grafana.run("Create")[0] == "SUCCESS"
    assert "Plugin management is not enabled" in grafana.step


def test_a_name_that_another_data_source_has_is_an_error(grafana):
    grafana.workspace.inside["sources"] = {"theirs": {**SOURCE, "uid": "theirs"}}
    status, reason = grafana.run("Create")
    assert (status, "same name already exists" in reason) == ("FAILED", True)


# users of IAM Identity Center


ADMINS, EDITORS, OTHERS = (f"9067642ac7-1234abcd-56ef-78ab-90cd-00000000000{n}" for n in range(3))


@pytest.fixture
def users(grafana):
    answers = Answers()
    with patch.dict(sys.modules, cfnresponse=answers):
        sys.modules.pop("ultracluster.constructs.handlers.grafana_users", None)
        module = import_module("ultracluster.constructs.handlers.grafana_users")

        def run(request, admins, editors=(), old=None):
            properties = {"WorkspaceId": grafana.workspace.id, "Admins": list(admins), "Editors": list(editors)}
            event = {"RequestType": request, "ResourceProperties": properties}
            module.handler(event | ({"OldResourceProperties": old} if old else {}), CONTEXT)
            status, _, reason = answers.sent.pop()
            return status, reason, properties

        yield run


def granted(grafana):
    found = boto3.client("grafana").list_permissions(workspaceId=grafana.workspace.id)["permissions"]
    return {(each["user"]["id"], each["user"]["type"]): each["role"] for each in found}


def test_groups_get_their_roles(grafana, users):
    assert users("Create", [ADMINS], [EDITORS])[0] == "SUCCESS"
    assert granted(grafana) == {(ADMINS, "SSO_GROUP"): "ADMIN", (EDITORS, "SSO_GROUP"): "EDITOR"}


def test_an_update_changes_roles_and_leaves_those_of_others(grafana, users):
    _, _, old = users("Create", [ADMINS], [EDITORS])
    boto3.client("grafana").update_permissions(
        workspaceId=grafana.workspace.id,
        updateInstructionBatch=[
            {"action": "ADD", "role": "VIEWER", "users": [{"id": OTHERS, "type": "SSO_GROUP"}]},
        ],
    )
    assert users("Update", [EDITORS], [], old)[0] == "SUCCESS"
    assert granted(grafana) == {(EDITORS, "SSO_GROUP"): "ADMIN", (OTHERS, "SSO_GROUP"): "VIEWER"}


def test_roles_in_force_are_not_sent_again(grafana, users):
    _, _, old = users("Create", [ADMINS])
    assert users("Update", [ADMINS], [], old)[0] == "SUCCESS"
    assert granted(grafana) == {(ADMINS, "SSO_GROUP"): "ADMIN"}


def test_more_groups_than_a_batch_takes(grafana, users):
    many = [f"9067642ac7-1234abcd-56ef-78ab-90cd-0000000000{n:02}" for n in range(45)]
    assert users("Create", many)[0] == "SUCCESS"
    assert len(granted(grafana)) == 45


def test_delete_leaves_users_to_the_workspace(grafana, users):
    _, _, old = users("Create", [ADMINS])
    assert users("Delete", [ADMINS], [], old)[0] == "SUCCESS"
    assert len(granted(grafana)) == 1


def test_errors_that_the_service_lists_fail_the_deployment(users):
    module = sys.modules["ultracluster.constructs.handlers.grafana_users"]
    listed = {"causedBy": {"users": [{"id": ADMINS}]}, "message": "no such group", "code": 404}

    class Client:
        def update_permissions(self, **_):
            return {"errors": [listed]}

    with pytest.raises(RuntimeError, match=f"did not add roles: {ADMINS}: no such group"):
        module.send(Client(), "g-1", "ADD", {ADMINS: "ADMIN"})


def test_a_workspace_that_does_not_exist_fails_with_the_reason(grafana, users):
    boto3.client("grafana").delete_workspace(workspaceId=grafana.workspace.id)
    status, reason, _ = users("Create", [ADMINS])
    assert (status, "was not found" in reason) == ("FAILED", True)


# the embedded AWS itself


def test_permissions_need_identity_center(account):
    client = boto3.client("grafana")
    made = client.create_workspace(
        accountAccessType="CURRENT_ACCOUNT",
        permissionType="CUSTOMER_MANAGED",
        workspaceRoleArn=account,
        authenticationProviders=["SAML"],
    )["workspace"]
    step = {"action": "ADD", "role": "ADMIN", "users": [{"id": ADMINS, "type": "SSO_GROUP"}]}
    with pytest.raises(ClientError, match="does not use IAM Identity Center"):
        client.update_permissions(workspaceId=made["id"], updateInstructionBatch=[step])


def test_service_accounts_and_tokens_are_listed_and_refused_twice(grafana):
    client, workspace = boto3.client("grafana"), {"workspaceId": grafana.workspace.id}
    made = client.create_workspace_service_account(name="a", grafanaRole="VIEWER", **workspace)
    with pytest.raises(ClientError, match="exists already"):
        client.create_workspace_service_account(name="a", grafanaRole="VIEWER", **workspace)
    account = {**workspace, "serviceAccountId": made["id"]}
    token = client.create_workspace_service_account_token(name="t", secondsToLive=60, **account)
    with pytest.raises(ClientError, match="exists already"):
        client.create_workspace_service_account_token(name="t", secondsToLive=60, **account)
    listed = client.list_workspace_service_account_tokens(**account)["serviceAccountTokens"]
    assert [(each["name"], "key" in each) for each in listed] == [("t", False)]
    client.delete_workspace_service_account_token(tokenId=token["serviceAccountToken"]["id"], **account)
    with pytest.raises(ClientError, match="was not found"):
        client.delete_workspace_service_account_token(tokenId="9", **account)
    assert client.list_workspace_service_account_tokens(**account)["serviceAccountTokens"] == []
