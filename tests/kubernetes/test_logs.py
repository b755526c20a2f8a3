"""Fluent Bit: its configuration, what it makes of an event, and what Helm renders."""

import re
from typing import Any

import pytest

from tests.kubernetes.environments import eks_environment
from tests.kubernetes.helm import rendered
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.deployed import DeployedResources, LogGroups
from ultracluster.kubernetes.logs import LOGS_ACCOUNT, STATE, fluent_bit_values, log_release
from ultracluster.kubernetes.parts import Release
from ultracluster.kubernetes.releases import releases
from ultracluster.kubernetes.scrape import MONITORING
from ultracluster.kubernetes.workloads import WORKLOAD_LABELS

GROUPS = LogGroups("/ultracluster/pods/test", "/ultracluster/nodes/test", "us-east-2")
MIRROR = "oci://mirror.example/copies"
COMMON = {
    "INPUT": {"name", "tag", "storage.type"},
    "FILTER": {"name", "match"},
    "OUTPUT": {"name", "match", "retry_limit", "storage.total_limit_size"},
}
"""Options of all plugins of a kind in Fluent Bit 5.1.1 (src/flb_input.c, flb_filter.c and flb_output.c)."""
SERVICE = {
    *("flush", "log_level", "parsers_file", "http_server", "http_listen", "http_port", "health_check"),
    *("storage.path", "storage.max_chunks_up"),
}
"""Options of the service in Fluent Bit 5.1.1 that the configuration uses (include/fluent-bit/flb_config.h)."""
OPTIONS = {
    "tail": {
        *("path", "exclude_path", "skip_long_lines", "read_from_head", "multiline.parser", "db"),
        *("refresh_interval", "rotate_wait"),
    },
    "systemd": {"path", "strip_underscores", "systemd_filter", "db"},
    "kubernetes": {"labels", "annotations", "merge_log", "k8s-logging.exclude", "buffer_size"},
    "nest": {"operation", "nested_under", "add_prefix"},
    "modify": {"rename", "copy", "add", "remove", "remove_wildcard"},
    "record_modifier": {"allowlist_key"},
    "cloudwatch_logs": {
        *("region", "log_group_name", "log_stream_name", "log_stream_prefix", "log_stream_template"),
        "auto_create_group",
    },
}
"""Options of the plugins in Fluent Bit 5.1.1 that the configuration uses, from the source of each plugin."""


def sections(text):
    """Kind and entries of the sections of a classic configuration."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in filter(None, text.splitlines()):
        if heading := re.fullmatch(r"\[([A-Z]+)\]", line):
            found.append((heading[1], []))
        else:
            key, _, value = line.strip().partition(" ")
            found[-1][1].append((key, value))
    return found


@pytest.fixture(scope="module")
def config():
    return fluent_bit_values(GROUPS)["config"]


@pytest.fixture(scope="module")
def objects():
    (release,) = log_release(GROUPS)
    return rendered(release)


def named(config, part, **wanted):
    found = [dict(entries) for _, entries in sections(config[part])]
    return [each for each in found if wanted.items() <= each.items()]


def test_every_option_is_one_of_its_plugin(config):
    for part, kind in (("inputs", "INPUT"), ("filters", "FILTER"), ("outputs", "OUTPUT")):
        for heading, entries in sections(config[part]):
            plugin = dict(entries)["Name"]
            assert heading == kind
            assert {key.lower() for key, _ in entries} - COMMON[kind] <= OPTIONS[plugin], plugin


def test_every_option_of_the_service_is_known(config):
    ((heading, entries),) = sections(config["service"])
    assert (heading, {key.lower() for key, _ in entries} - SERVICE) == ("SERVICE", set())


@pytest.mark.parametrize("part", ["service", "inputs", "filters", "outputs"])
def test_the_parser_of_fluent_bit_reads_every_line(config, part):
    """Sections without indentation, entries with the same one, a key and a value each, and no comment in a value."""
    for line in filter(None, config[part].splitlines()):
        assert re.fullmatch(r"\[(SERVICE|INPUT|FILTER|OUTPUT)\]|    [A-Za-z][\w.-]* \S([^\t#]*\S)?", line), line


@pytest.mark.parametrize("part", ["service", "inputs", "filters", "outputs"])
def test_an_option_stands_once_unless_it_is_a_list(config, part):
    several = {"systemd_filter", "rename", "copy", "add", "remove", "remove_wildcard", "allowlist_key"}
    for _, entries in sections(config[part]):
        keys = [key.lower() for key, _ in entries if key.lower() not in several]
        assert len(keys) == len(set(keys))


def lifted(event, entries):
    settings = dict(entries)
    inner = event.pop(settings["Nested_under"], {})
    return {**event, **{settings["Add_prefix"] + key: value for key, value in inner.items()}}


def modified(event, entries):
    """What the filter modify does: no rule overwrites a key (Fluent Bit, plugins/filter_modify)."""
    for key, value in entries:
        old, _, new = value.partition(" ")
        if key in ("Copy", "Rename") and old in event and new not in event:
            event = {**event, new: event[old]}
            if key == "Rename":
                del event[old]
        elif key == "Add" and old not in event:
            event[old] = new
        elif key == "Remove":
            event.pop(value, None)
        elif key == "Remove_wildcard":
            event = {name: each for name, each in event.items() if not name.startswith(value)}
    return event


def shipped(config, tag, event: dict[str, Any]):
    """An event as the filters of the configuration leave it."""
    for _, entries in sections(config["filters"]):
        settings = dict(entries)
        if not re.fullmatch(settings["Match"].replace("*", ".*"), tag):
            continue
        if settings["Name"] == "nest":
            event = lifted(event, entries)
        elif settings["Name"] == "modify":
            event = modified(event, entries)
        elif settings["Name"] == "record_modifier":
            kept = {value for key, value in entries if key == "Allowlist_key"}
            event = {name: value for name, value in event.items() if name in kept}
    return event


RECORDED = {
    "time": "2026-11-22T03:00:01.1Z",
    "stream": "stderr",
    "log": "RuntimeError: NCCL error",
    "pod": "llm-node-0-7-x7k2p",
    "namespace": "research",
    "team": "research",
    "node": "ip-10-0-1-2",
    "container": "node",
    "workload": "llm",
    "rank": "7",
}
"""What Fluent Bit 5.1.1 with this configuration put into CloudWatch Logs, run by hand against a server on loopback.

Its streams were `research.llm-node-0-7-x7k2p.node` and, for cloud-init, `n1.cloud-init` (22 November 2026).
"""


def test_an_event_is_what_the_real_fluent_bit_sends(config):
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "llm",
        "batch.kubernetes.io/job-name": "llm-node-0",
        "batch.kubernetes.io/job-completion-index": "7",
    }
    event = pod_event(**labels)
    event |= {"time": RECORDED["time"], "log": RECORDED["log"]}
    event["kubernetes"]["host"] = RECORDED["node"]
    assert shipped(config, "kube.var.log", event) == RECORDED


def pod_event(**labels):
    kubernetes = {
        "pod_name": "llm-node-0-7-x7k2p",
        "namespace_name": "research",
        "container_name": "node",
        "host": "ip-10-0-1-2.ec2.internal",
        "pod_id": "1",
        "docker_id": "2",
        "container_image": "train:1",
        "labels": labels,
    }
    return {"time": "2026-11-22T03:00:00Z", "stream": "stderr", "_p": "F", "log": "boom", "kubernetes": kubernetes}


def test_an_event_of_a_pod_names_workload_team_rank_and_node(config):
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "llm",
        "batch.kubernetes.io/job-name": "llm-node-0",
        "batch.kubernetes.io/job-completion-index": "7",
    }
    assert shipped(config, "kube.var.log", pod_event(**labels)) == {
        "time": "2026-11-22T03:00:00Z",
        "stream": "stderr",
        "log": "boom",
        "workload": "llm",
        "team": "research",
        "namespace": "research",
        "pod": "llm-node-0-7-x7k2p",
        "container": "node",
        "node": "ip-10-0-1-2.ec2.internal",
        "rank": "7",
    }


@pytest.mark.parametrize("label", WORKLOAD_LABELS)
def test_each_operator_s_label_names_the_workload(config, label):
    assert shipped(config, "kube.var.log", pod_event(**{label: "llm"}))["workload"] == "llm"


def test_a_pod_without_a_job_is_its_own_workload(config):
    assert shipped(config, "kube.var.log", pod_event())["workload"] == "llm-node-0-7-x7k2p"


def test_an_event_of_a_node_keeps_message_unit_and_node(config):
    event = {"MESSAGE": "NVRM: Xid (PCI:0000:53:00): 79", "TRANSPORT": "kernel", "BOOT_ID": "1", "PRIORITY": "3"}
    found = shipped(config, "node.kernel", event)
    assert found == {"log": "NVRM: Xid (PCI:0000:53:00): 79", "node": "${NODE_NAME}"}


def test_a_container_has_a_stream_of_its_own_that_a_new_pod_does_not_share(config):
    (pods,) = named(config, "outputs", Match="kube.*")
    assert pods["log_stream_template"] == "$namespace.$pod.$container"
    assert pods["log_group_name"] == GROUPS.pods


def test_every_event_goes_to_exactly_one_output(config):
    tags = [dict(entries)["Tag"] for _, entries in sections(config["inputs"])]
    for tag in tags:
        matching = [found for found in named(config, "outputs") if found["Match"] == tag]
        assert len(matching) == 1, tag
    assert {found["log_group_name"] for found in named(config, "outputs")} == {GROUPS.pods, GROUPS.nodes}


def test_no_line_of_a_pod_that_fails_at_once_is_lost(config):
    (pods,) = named(config, "inputs", Tag="kube.*")
    assert int(pods["Refresh_Interval"]) <= 5
    assert pods["Read_from_Head"] == "On"
    for found in named(config, "inputs"):
        assert found["DB"].startswith(f"{STATE}/")
        assert found["storage.type"] == "filesystem"


def test_the_kernel_s_log_has_xids_and_the_services_those_of_jobs(config):
    kernel, services = (named(config, "inputs", Tag=f"node.{name}")[0] for name in ("kernel", "services"))
    assert kernel["Systemd_Filter"] == "_TRANSPORT=kernel"
    assert services["Path"] == "/var/log/journal"


def test_fluent_bit_does_not_read_itself(config):
    (pods,) = named(config, "inputs", Tag="kube.*")
    assert pods["Exclude_Path"] == f"/var/log/containers/fluent-bit-*_{MONITORING}_*.log"


def test_every_rendered_object_follows_the_schema_of_kubernetes(objects):
    for each in objects:
        check(each)


def test_helm_keeps_the_configuration_as_it_is(objects, config):
    (found,) = [each for each in objects if each["kind"] == "ConfigMap"]
    text = found["data"]["fluent-bit.conf"]
    for part in ("service", "inputs", "filters", "outputs"):
        assert sections(config[part]) == [each for each in sections(text) if each in sections(config[part])]
    assert len(sections(text)) == sum(
        len(sections(config[part])) for part in ("service", "inputs", "filters", "outputs")
    )


def test_fluent_bit_runs_on_every_node_with_its_account(objects):
    (daemon,) = [each for each in objects if each["kind"] == "DaemonSet"]
    spec = daemon["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]
    assert spec["serviceAccountName"] == LOGS_ACCOUNT
    assert daemon["metadata"]["namespace"] == MONITORING
    (container,) = spec["containers"]
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["/fluent-bit/etc/conf", STATE]


def test_it_may_read_pods_and_namespaces_and_nothing_else(objects):
    (role,) = [each for each in objects if each["kind"] == "ClusterRole"]
    (rule,) = role["rules"]
    assert (rule["resources"], rule["verbs"]) == (["namespaces", "pods"], ["get", "list", "watch"])


def test_only_its_own_image_is_pulled_and_that_from_the_mirror():
    deployed = DeployedResources("test-1", logs=GROUPS)
    (release,) = [
        part for part in releases(eks_environment(chart_mirror=MIRROR), deployed) if part.name == "fluent-bit"
    ]
    assert isinstance(release, Release)
    images = set(re.findall(r"'image': '([^']+)'", str(rendered(release))))
    assert len(images) == 1
    assert images.pop().startswith("mirror.example/copies/fluent/fluent-bit:")


def test_without_log_groups_there_is_no_release():
    assert log_release(None) == ()
