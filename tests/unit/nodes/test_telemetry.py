"""Steps that run the agents of PCS nodes, run on a fake machine."""

import json
import re
import subprocess

import pytest
import yaml

from tests.unit.nodes.machine import Machine
from tests.unit.nodes.test_eks import group
from ultracluster.catalog.agents import DCGM_VERSION, IMAGES
from ultracluster.catalog.metric_groups import METRIC_GROUPS
from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.collectors import TEXTFILE_FOLDER
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.pcs import compute_node_steps, login_node_steps
from ultracluster.nodes.steps import script
from ultracluster.nodes.telemetry import Telemetry, telemetry_steps
from ultracluster.telemetry.dcgm import counters_csv
from ultracluster.telemetry.metrics import METRICS

URL = "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
TELEMETRY = Telemetry(
    remote_write_url=URL,
    log_group="/ultracluster/nodes/dev-1",
    region="us-east-2",
    cluster="dev-cluster",
    environment="dev",
    interval=30,
    slurm=True,
)
MOUNT = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=False)
SHOWN = """\
SlurmctldHost[0]        = slurmctld-primary(10.1.0.7)
SlurmctldHost[1]        = slurmctld-backup(10.1.0.9)
SlurmctldPort           = 6817
SlurmctldTimeout        = 300 sec
"""


def steps(node="compute", **changed):
    telemetry = TELEMETRY if not changed else Telemetry(**{**vars(TELEMETRY), **changed})
    found = (
        compute_node_steps(group(), [MOUNT], telemetry=telemetry)
        if node == "compute"
        else login_node_steps([MOUNT], instance_type="m7i.large", telemetry=telemetry)
    )
    return {step.name: step for step in found}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, instance_store=2)


def run(machine, name, node="compute", **failing):
    ran = machine.run(steps(node)[name], **failing)
    assert (ran.returncode, ran.stderr) == (0, "")


def service(machine, name):
    """Sections of a unit file: keys with their last value."""
    return dict(re.findall(r"^(\w+)=(.*)$", machine.unit(name).replace("\\\n", ""), re.M))


# what a node runs


def test_a_compute_node_runs_every_agent_and_admits_jobs_whether_or_not_they_work(machine):
    found = steps()
    agents = ["collect-efa", "collect-lustre", "configure-metrics", "run-exporters", "serve-job-metrics", "ship-logs"]
    assert list(found)[-7:] == [*agents, "admit-jobs"]
    assert not any(found[name].required for name in agents)
    assert found["write-job-programs"].required


def test_a_login_node_has_neither_gpus_nor_efa_and_reads_the_metrics_of_slurm_once_it_answers():
    found = steps("login")
    assert "collect-efa" not in found
    assert found["run-exporters"].arguments == (IMAGES["prometheus"], IMAGES["node_exporter"])
    assert found["find-slurm-controller"].stage == "ready"
    assert "find-slurm-controller" not in steps("login", slurm=False)
    assert "find-slurm-controller" not in steps()


def test_a_node_without_telemetry_has_no_agent():
    assert telemetry_steps(None, instance_type="", node_group="", gpus=False, efa=False, mounts=()) == []


def test_pcs_takes_the_steps():
    """At most 20 scripts a stage and 20 arguments of 256 characters (PCS API, NodeLifecycleScript)."""
    for found in (steps(), steps("login")):
        assert len(found) <= 20
        assert all(len(step.arguments) <= 20 for step in found.values())
        assert all(0 < len(argument) <= 256 for step in found.values() for argument in step.arguments)


def test_images_come_from_the_mirror_with_the_digest():
    *_, dcgm = steps(mirror="oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror")["run-exporters"].arguments
    path = IMAGES["dcgm_exporter"].removeprefix("nvcr.io/")
    assert dcgm == f"111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror/{path}"
    assert re.search(r"@sha256:[0-9a-f]{64}$", dcgm)


def test_dcgm_of_the_counters_is_that_of_the_image():
    assert f":{DCGM_VERSION}-" in IMAGES["dcgm_exporter"]


# configuration


def test_the_node_fills_in_every_placeholder(machine):
    run(machine, "configure-metrics")
    text = machine.read("etc/ultracluster/metrics/prometheus.yml")
    assert not re.search(r"@[A-Z_]+@", text)
    found = yaml.safe_load(text)
    assert found["global"]["scrape_interval"] == "30s"
    assert found["global"]["external_labels"] == {"cluster": "dev-cluster", "environment": "dev"}
    assert {(each["url"], each["sigv4"]["region"]) for each in found["remote_write"]} == {(URL, "us-east-2")}
    slurm = next(job for job in found["scrape_configs"] if job["job_name"] == "slurm")
    assert slurm["scrape_interval"] == "60s"


@pytest.mark.parametrize("node", ["compute", "login"])
def test_groups_that_the_environment_gives_up_are_not_sent(machine, node):
    drop = ("efa/commands", "slurm/partitions")
    ran = machine.run(steps(node, drop=drop)["configure-metrics"])
    assert (ran.returncode, ran.stderr) == (0, "")
    text = machine.read("etc/ultracluster/metrics/prometheus.yml")
    assert not re.search(r"@[A-Z_]+@", text)
    for queue in yaml.safe_load(text)["remote_write"]:
        dropped = queue["write_relabel_configs"][0]
        assert dropped["action"] == "drop"
        metrics = (each for each in METRICS.values() if each.group_name in drop)
        assert set(dropped["regex"].split("|")) == {"scrape_series_added", *(each.name for each in metrics)}
    assert (machine.root / "etc/ultracluster/metrics/targets/dcgm.json").exists() is (node == "compute")


def test_all_groups_fit_into_the_arguments_of_a_step():
    for node in ("compute", "login"):
        arguments = steps(node, drop=tuple(METRIC_GROUPS))["configure-metrics"].arguments
        assert len(arguments) <= 20
        assert all(0 < len(argument) <= 256 for argument in arguments)
        assert " ".join(arguments[9:]).split() == list(METRIC_GROUPS)


def test_targets_carry_the_labels_of_the_node(machine):
    run(machine, "configure-metrics")
    labels = {
        "instance": "train-1",
        "node": "train-1",
        "instance_type": "p5en.48xlarge",
        "node_group": "train",
    }
    for name, port in (("node", 9100), ("dcgm", 9400), ("jobs", 9101)):
        [target] = json.loads(machine.read(f"etc/ultracluster/metrics/targets/{name}.json"))
        assert target == {"targets": [f"127.0.0.1:{port}"], "labels": labels}
    assert machine.read("etc/ultracluster/metrics/dcgm-counters.csv") == counters_csv(DCGM_VERSION)


def test_a_login_node_has_no_target_with_gpus(machine):
    run(machine, "configure-metrics", "login")
    targets = (machine.root / "etc/ultracluster/metrics/targets").iterdir()
    assert [file.name for file in targets] == ["node.json"]


def test_the_generated_script_is_a_bash_script_that_stops_at_the_first_failure():
    text = script("configure-metrics").text
    assert text.startswith("#!/bin/bash\n# ")
    assert "\nset -euo pipefail\n" in text


# containers


def test_containers_start_without_anybody_waiting_and_only_on_loopback(machine):
    run(machine, "run-exporters")
    started = [command for command in machine.commands("systemctl") if " start " in command]
    assert started == [
        f"systemctl start --no-block {name}.service" for name in ("node-exporter", "metrics-agent", "dcgm-exporter")
    ]
    for name, address in (("node-exporter", "9100"), ("metrics-agent", "9090"), ("dcgm-exporter", "9400")):
        command = service(machine, f"{name}.service")["ExecStart"]
        assert f"address=127.0.0.1:{address}" in command.replace("--address ", "--address=")
        assert {"--cpus", "--memory"} <= set(command.split())
    assert " --agent " in service(machine, "metrics-agent.service")["ExecStart"]


def test_dcgm_exporter_reads_the_folder_that_the_prolog_writes_which_a_reboot_empties(machine):
    run(machine, "run-exporters")
    run(machine, "write-job-programs")
    prolog = machine.read("opt/ultracluster/prolog").replace(str(machine.root), "")
    folder = re.search(r"^folder=(\S+)$", prolog, re.M)[1]
    command = service(machine, "dcgm-exporter.service")["ExecStart"]
    assert f" -v {folder}:/gpu-jobs:ro " in command
    assert "--hpc-job-mapping-dir /gpu-jobs" in command
    assert folder.startswith("/run/")


def test_slurmd_is_heard_whether_it_writes_a_file_or_to_the_journal(machine):
    run(machine, "ship-logs")
    unit = service(machine, "slurmd-log.service")
    assert "--unit=slurmd.service" in unit["ExecStart"]
    assert unit["StandardOutput"] == "append:/var/log/ultracluster/slurmd.log"
    files = json.loads(machine.read("etc/ultracluster/logs.json"))["logs"]["logs_collected"]["files"]["collect_list"]
    paths = {file["log_stream_name"]: file["file_path"] for file in files}
    assert paths["train-1/slurmd"] == f"{machine.root}/var/log/slurmd.log"
    assert paths["train-1/slurmd-journal"] == f"{machine.root}/var/log/ultracluster/slurmd.log"


@pytest.mark.parametrize("step", ["write-job-programs", "ship-logs"])
def test_other_users_of_a_node_may_not_read_what_jobs_print(machine, step):
    run(machine, step)
    assert (machine.root / "var/log/ultracluster").stat().st_mode & 0o777 == 0o700


def test_an_image_that_the_node_has_is_not_pulled(machine):
    run(machine, "run-exporters")
    pull = str(machine.root / "usr/local/sbin/pull-image")
    for _ in range(2):
        assert machine._execute(pull, "quay.io/prometheus/prometheus:v3.5.3").returncode == 0
    assert [line for line in machine.commands("docker") if " pull" in line] == [
        "docker pull --quiet quay.io/prometheus/prometheus:v3.5.3"
    ]
    assert machine.commands("aws") == []


def test_a_registry_of_ecr_gets_the_password_of_the_node(machine):
    run(machine, "run-exporters")
    registry = "111122223333.dkr.ecr.us-east-2.amazonaws.com"
    assert machine._execute(str(machine.root / "usr/local/sbin/pull-image"), f"{registry}/mirror/x:1").returncode == 0
    assert machine.commands("aws") == ["aws ecr get-login-password --region us-east-2"]
    assert f"docker login --username AWS --password-stdin {registry}" in machine.commands("docker")


def test_dcgm_exporter_reads_the_folder_that_the_prolog_writes(machine):
    run(machine, "run-exporters")
    command = service(machine, "dcgm-exporter.service")["ExecStart"].split()
    (mount,) = [word for word in command if word.endswith(":/gpu-jobs:ro")]
    folder = f"folder={mount.removesuffix(':/gpu-jobs:ro')}"
    assert script("write-job-programs").text.count(f"\n{folder}\n") == 2


def test_logs_of_containers_have_a_limit(machine):
    run(machine, "run-exporters")
    for name in ("node-exporter", "metrics-agent", "dcgm-exporter"):
        command = service(machine, f"{name}.service")["ExecStart"]
        assert " --log-driver json-file --log-opt max-size=10m --log-opt max-file=2 " in command


def test_node_exporter_reads_no_folder_that_users_write(machine):
    run(machine, "run-exporters")
    command = service(machine, "node-exporter.service")["ExecStart"].split()
    folders = [word for word in command if word.startswith("--collector.textfile.directory=")]
    assert folders == [f"--collector.textfile.directory=/host{TEXTFILE_FOLDER}"]


def test_a_node_whose_image_has_no_docker_says_so(tmp_path):
    machine = Machine(tmp_path / "other", docker=False)
    ran = machine.run(steps()["run-exporters"])
    assert ran.returncode == 1
    assert "has no Docker" in ran.stderr
    assert [command for command in machine.commands("systemctl") if " start " in command] == []


# Slurm


def scontrol(machine, body, version="25.11"):
    path = f"opt/aws/pcs/scheduler/slurm-{version}/bin/scontrol"
    machine.write(path, f"#!/bin/bash\n{body}\n")
    (machine.root / path).chmod(0o755)


def find_controller(machine):
    """Runs what the timer runs, with the arguments of its unit."""
    program, *paths = service(machine, "find-slurm-controller.service")["ExecStart"].split()
    return machine._execute(str(machine.root) + program, *paths)


SLURM_TARGETS = "etc/ultracluster/metrics/targets/slurm.json"


def test_every_path_of_every_controller_is_a_target_of_its_own(machine):
    scontrol(machine, "exit 1", "25.05")
    scontrol(machine, f"cat <<'END'\n{SHOWN}END")
    run(machine, "find-slurm-controller", "login")
    assert find_controller(machine).returncode == 0
    found = json.loads(machine.read(SLURM_TARGETS))
    assert {target for each in found for target in each["targets"]} == {"10.1.0.7:6817", "10.1.0.9:6817"}
    paths = {each["labels"]["__metrics_path__"] for each in found}
    assert paths == {"/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler"}
    assert len({(*each["targets"], each["labels"]["instance"]) for each in found}) == len(found)


def test_a_new_address_of_the_controller_replaces_the_old_one_and_an_old_one_touches_nothing(machine):
    scontrol(machine, f"cat <<'END'\n{SHOWN}END")
    run(machine, "find-slurm-controller", "login")
    assert dict(service(machine, "find-slurm-controller.timer"))["OnUnitInactiveSec"] == "5min"
    assert "systemctl start find-slurm-controller.timer" in machine.commands("systemctl")
    written = []
    for shown in (SHOWN, SHOWN, SHOWN.replace("10.1.0.7", "10.1.0.8")):
        scontrol(machine, f"cat <<'END'\n{shown}END")
        assert find_controller(machine).returncode == 0
        written.append((machine.root / SLURM_TARGETS).stat().st_ino)
    assert written[0] == written[1]
    assert "10.1.0.7" not in machine.read(SLURM_TARGETS)
    scontrol(machine, "exit 1")
    assert find_controller(machine).returncode == 1
    assert "10.1.0.8" in machine.read(SLURM_TARGETS)


def test_a_controller_that_never_answers_leaves_no_target(machine):
    scontrol(machine, "exit 1")
    run(machine, "find-slurm-controller", "login")
    assert find_controller(machine).returncode == 1
    assert not (machine.root / SLURM_TARGETS).exists()


# logs


def test_the_log_agent_sends_each_log_to_a_stream_of_the_node(machine):
    run(machine, "ship-logs")
    found = json.loads(machine.read("etc/ultracluster/logs.json"))
    files = found["logs"]["logs_collected"]["files"]["collect_list"]
    assert {file["log_group_name"] for file in files} == {"/ultracluster/nodes/dev-1"}
    streams = {file["log_stream_name"] for file in files}
    assert {"train-1/kernel", "train-1/jobs", "train-1/slurmd", "train-1/boot-steps"} <= streams
    assert found["agent"] == {"region": "us-east-2"}
    started = [command for command in machine.commands("systemctl") if " start " in command]
    units = ("kernel-log.service", "slurmd-log.service", "log-agent.service", "rotate-logs.timer")
    assert started == [f"systemctl start --no-block {unit}" for unit in units]


def test_a_log_that_a_storm_fills_is_limited_within_a_minute(machine):
    run(machine, "ship-logs")
    assert service(machine, "rotate-logs.timer")["OnUnitActiveSec"] == "1min"
    assert service(machine, "rotate-logs.service")["ExecStart"] == "/usr/local/sbin/rotate-logs"
    logs = machine.root / "var/log/ultracluster"
    for name, size in (("kernel.log", 50_000_001), ("jobs.log", 1_000)):
        with (logs / name).open("w") as file:
            file.truncate(size)
    with (logs / "kernel.log").open("a") as storm:
        subprocess.run(["bash", machine.root / "usr/local/sbin/rotate-logs"], check=True)
        storm.write("goes on\n")
    sizes = {file.name: file.stat().st_size for file in logs.iterdir()}
    assert sizes == {"kernel.log": 8, "kernel.log.1": 50_000_001, "jobs.log": 1_000}


AGENT = "opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl"


def test_the_agent_of_the_image_gets_our_logs_beside_its_own_configuration(machine):
    run(machine, "ship-logs")
    machine.write(AGENT, '#!/bin/bash\necho "$@" > "$ROOT/said"\n')
    (machine.root / AGENT).chmod(0o755)
    assert machine._execute(str(machine.root / "usr/local/sbin/start-log-agent"), "us-east-2").returncode == 0
    said = machine.read("said").replace(str(machine.root), "")
    assert said == "-a append-config -m ec2 -s -c file:/etc/ultracluster/logs.json\n"
    assert machine.commands("curl") == []


def test_an_image_without_the_agent_gets_it_from_the_bucket_of_the_region(machine):
    run(machine, "ship-logs")
    program = str(machine.root / "usr/local/sbin/start-log-agent")
    machine._fakes({"curl": "exit 0", "apt-get": "exit 0", "dpkg": "exit 0"})
    assert machine._execute(program, "us-east-2").returncode != 0  # the package is a fake: nothing is there to start
    [curl] = machine.commands("curl")
    bucket = "https://amazoncloudwatch-agent-us-east-2.s3.us-east-2.amazonaws.com"
    assert curl.endswith(f"{bucket}/ubuntu/amd64/latest/amazon-cloudwatch-agent.deb")


def test_a_cpu_node_has_neither_dcgm_nor_efa_collectors():
    cpu = NodeGroup.model_validate({"name": "prep", "instance_type": "c7i.48xlarge", "count": 2})
    found = {step.name: step for step in compute_node_steps(cpu, [MOUNT], telemetry=TELEMETRY)}
    assert "collect-efa" not in found
    assert "serve-job-metrics" not in found
    assert found["run-exporters"].arguments == (IMAGES["prometheus"], IMAGES["node_exporter"])
    assert "gpus" not in found["configure-metrics"].arguments
    assert "find-slurm-controller" not in found
    assert "set-up-lustre-efa" not in found


def test_nodes_of_several_types_ask_the_metadata_service_for_theirs(machine):
    types = ["c7i.48xlarge", "m7i.48xlarge"]
    cpu = NodeGroup.model_validate({"name": "prep", "instance_types": types, "count": 2})
    (step,) = [step for step in compute_node_steps(cpu, telemetry=TELEMETRY) if step.name == "configure-metrics"]
    assert "auto" in step.arguments
    answer = 'case "$*" in *PUT*) echo TOKEN ;; *"token: TOKEN"*instance-type) echo m7i.48xlarge ;; *) exit 22 ;; esac'
    ran = machine.run(step, curl=answer)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert '"instance_type": "m7i.48xlarge"' in machine.read("etc/ultracluster/metrics/targets/node.json")


@pytest.mark.parametrize("node", ["compute", "login"])
def test_nodes_without_a_workspace_send_logs_and_run_no_agent_of_metrics(node):
    both, logs = steps(node), steps(node, remote_write_url=None)
    gone = {"configure-metrics", "run-exporters", "collect-lustre"}
    gone |= {"serve-job-metrics", "collect-efa"} if node == "compute" else {"find-slurm-controller"}
    assert both.keys() - logs.keys() == gone
    assert logs["ship-logs"] == both["ship-logs"]
