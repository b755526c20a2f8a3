"""What PCS nodes run at boot: their steps, and user data for what must run before them."""

from email import message_from_string

import pytest

from tests.kubernetes.environments import eks_environment
from tests.unit.nodes.machine import Machine
from tests.unit.nodes.test_telemetry import TELEMETRY
from ultracluster.config.containers import Containers
from ultracluster.config.health import Health
from ultracluster.config.slurm_settings import serves_metrics
from ultracluster.nodes.containers import ContainerSource
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.mounts import NfsMount
from ultracluster.nodes.pcs import (
    EPILOG,
    PCS_SCRIPTS,
    PROLOG,
    TASK_PROLOG,
    compute_node_steps,
    compute_node_user_data,
    job_settings,
    login_node_steps,
    login_node_user_data,
    metrics_settings,
    own_programs,
)
from ultracluster.nodes.steps import Step
from ultracluster.nodes.users import UserSource

OVER_EFA = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)


def group(instance_type="p5en.48xlarge", **settings):
    [found] = eks_environment({"train": instance_type}).node_groups
    return found.model_copy(update=settings)


def names(steps):
    return [step.name for step in steps]


def parts(text):
    document = message_from_string(text)
    assert not document.defects
    return [(part.get_content_type(), part.get_payload()) for part in document.get_payload()]


COMPUTE = compute_node_steps(group(), [OVER_EFA])


def test_a_compute_node_admits_jobs_after_everything_else():
    assert names(COMPUTE) == [
        "separate-users",
        "hold-kernel",
        "set-job-environment",
        "write-job-programs",
        "mount-scratch",
        "set-lustre-module-options",
        "set-up-lustre-efa",
        "mount-lustre",
        "tune-lustre",
        "read-topology",
        "admit-jobs",
    ]


def test_mounts_scratch_and_tuning_are_done_at_every_boot_and_the_rest_once():
    again = [step.name for step in COMPUTE if step.frequency == "every_boot"]
    assert again == ["mount-scratch", "mount-lustre", "tune-lustre", "admit-jobs"]
    assert [step.name for step in COMPUTE if step.stage == "ready"] == ["read-topology"]


def test_a_group_without_local_storage_mounts_no_scratch():
    assert "mount-scratch" not in names(compute_node_steps(group(local_storage="none"), [OVER_EFA]))


def test_a_login_node_mounts_over_tcp_and_nothing_keeps_users_out():
    assert names(login_node_steps([OVER_EFA], queue_folders="/fsx")) == [
        "hold-kernel",
        "set-job-environment",
        "mount-lustre",
        "create-folders",
    ]
    assert names(login_node_steps()) == ["hold-kernel", "set-job-environment"]


def test_jobs_on_p5_4xlarge_get_the_variable_that_it_needs(machine):
    (step,) = (step for step in compute_node_steps(group("p5.4xlarge"), ()) if step.name == "set-job-environment")
    for _ in range(2):
        assert machine.run(step).returncode == 0
    assert step.arguments == ("FI_HMEM_DISABLE_P2P=1",)
    assert machine.run(machine.read("opt/ultracluster/task-prolog")).stdout == "export FI_HMEM_DISABLE_P2P=1\n"
    assert machine.read("etc/profile.d/ultracluster.sh") == "export FI_HMEM_DISABLE_P2P=1\n"


def test_slurm_runs_the_task_prolog_unless_the_user_has_one():
    small, large = group("p5.4xlarge"), group("p5.48xlarge")
    programs = {"Prolog": PROLOG, "Epilog": EPILOG, "SchedulerParameters": "nohold_on_prolog_fail"}
    found = job_settings({"MinJobAge": 300}, [large, small], "24.11")
    assert found == {"TaskProlog": TASK_PROLOG, "MinJobAge": 300, **programs}
    assert job_settings({"TaskProlog": "/opt/own.sh"}, [small], "24.11") == {"TaskProlog": "/opt/own.sh", **programs}


def test_ultraservers_have_imex_and_a_prolog_that_does_not_hold_beside_flags_of_the_user():
    ultraserver = group("p6e-gb200.36xlarge")
    assert "set-up-imex" in names(compute_node_steps(ultraserver))
    assert "read-topology" not in names(compute_node_steps(ultraserver))
    assert job_settings({}, [group(), ultraserver], "25.11")["PrologFlags"] == "Alloc,NoHold"
    given = {"PrologFlags": "nohold,DeferBatch"}
    assert job_settings(given, [ultraserver], "25.11")["PrologFlags"] == "nohold,DeferBatch,Alloc"
    assert "PrologFlags" not in job_settings({}, [group()], "25.11")


@pytest.mark.parametrize("instance_type", ["p6e-gb200.36xlarge", "p6-b200.48xlarge"])
def test_pcs_takes_the_steps_of_a_node_that_has_all_of_them(instance_type):
    """At most 20 scripts a stage (PCS API Reference, NodeLifecycleScript), of which one runs those of the user."""
    steps = compute_node_steps(
        group(instance_type),
        [OVER_EFA, NfsMount("10.0.0.9:/", "/home", ("nfsvers=4.1",))],
        telemetry=TELEMETRY,
        users=UserSource("/ultracluster/test/users", "us-east-2"),
        health=Health(accept="full", spares={"train": 1}),
        containers=ContainerSource("25.11"),
    )
    for stage in ("bootstrapped", "ready"):
        assert len([step for step in steps if step.stage == stage]) + (stage == "bootstrapped") <= 20


def test_containers_are_unpacked_on_local_disks_and_on_the_root_volume_without_them():
    files = Containers(files="s3://software/containers", sha256="0" * 64)
    source = ContainerSource("25.11", files)

    def arguments(*places):
        [step] = [step for steps in places for step in steps if step.name == "set-up-containers"]
        assert step.required
        return step.arguments

    pinned = (files.files, files.sha256)
    assert arguments(compute_node_steps(group(), containers=source)) == (
        *("25.11", "3.4.0", "/scratch/enroot", "gpus"),
        *pinned,
    )
    without = group(local_storage="none")
    assert arguments(compute_node_steps(without, containers=source))[2] == "/var/lib/enroot"
    cpu = group().model_copy(update={"instance_type": "c7i.48xlarge"})
    assert arguments(compute_node_steps(cpu, containers=source))[2:4] == ("/var/lib/enroot", "cpu")
    assert arguments(login_node_steps(containers=source))[2:4] == ("none", "login")
    assert arguments(compute_node_steps(group("p6e-gb200.36xlarge"), containers=ContainerSource("25.11"))) == (
        *("25.11", "4.0.0", "/scratch/enroot", "gpus"),
    )


def test_jobs_whose_prolog_fails_are_not_held_and_words_that_pcs_sets_remain():
    found = job_settings({"SchedulerParameters": "bf_continue,requeue_delay=30"}, [], "25.11")["SchedulerParameters"]
    expected = "bf_continue,requeue_delay=30,requeue_on_resume_failure,enable_expedited_requeue,nohold_on_prolog_fail"
    assert found == expected


def test_slurm_runs_our_programs_and_these_run_those_of_the_user():
    own = {"Prolog": "/opt/own/*", "Epilog": "/opt/epilog.sh", "MinJobAge": 300}
    found = job_settings(own, [group()], "25.11")
    assert (found["Prolog"], found["Epilog"], found["MinJobAge"]) == (PROLOG, EPILOG, 300)
    [step] = (
        step
        for step in compute_node_steps(group(), (), own_programs=own_programs(own))
        if step.name == "write-job-programs"
    )
    assert step.arguments == ("ended", "/opt/own/*", "/opt/epilog.sh")
    assert step.required


def test_the_controller_serves_metrics_beside_what_the_user_set():
    found = metrics_settings({"CommunicationParameters": "block_null_hash"}, "25.11")
    assert found == {"MetricsType": "metrics/openmetrics", "CommunicationParameters": "block_null_hash,enable_http"}
    assert metrics_settings(found, "25.11") == found


@pytest.mark.parametrize(("settings", "version"), [({}, "25.05"), ({"PrivateData": "jobs"}, "26.05")])
def test_a_controller_that_cannot_serve_metrics_is_not_asked_to(settings, version):
    assert metrics_settings(settings, version) == settings
    assert not serves_metrics(settings, version)


def test_every_compute_node_has_the_task_prolog(machine):
    (step,) = (step for step in COMPUTE if step.name == "set-job-environment")
    assert machine.run(step).returncode == 0
    assert machine.read("opt/ultracluster/task-prolog") == "#!/bin/bash\n"


def test_locked_memory_has_no_limit_in_slurmd_and_in_sessions(machine):
    for steps in (COMPUTE, login_node_steps()):
        assert machine.run(next(step for step in steps if step.name == "set-job-environment")).returncode == 0
        limits = machine.read("etc/security/limits.d/ultracluster.conf")
        assert limits == "* soft memlock unlimited\n* hard memlock unlimited\n"
        drop_in = machine.read("etc/systemd/system/slurmd.service.d/locked-memory.conf")
        assert drop_in == "[Service]\nLimitMEMLOCK=infinity\n"


def test_every_step_has_a_script_that_nodes_may_read():
    health = Health(spares={"train": 1})
    compute = compute_node_steps(group("p5.4xlarge"), [OVER_EFA], telemetry=TELEMETRY, health=health)
    nfs = NfsMount("10.0.0.9:/", "/home", ("nfsvers=4.1",))
    users = UserSource("/ultracluster/test/users", "us-east-2")
    login = login_node_steps([OVER_EFA, nfs], queue_folders="/fsx", telemetry=TELEMETRY, users=users, health=health)
    imex = compute_node_steps(group("p6e-gb200.36xlarge"), containers=ContainerSource("25.11"))
    steps = [*COMPUTE, *compute, *login, *imex, Step("ask-directory")]
    assert set(names(steps)) == set(PCS_SCRIPTS)


@pytest.mark.parametrize("dlami", [True, False])
def test_first_boot_and_reboot_of_a_compute_node(tmp_path, dlami):
    machine = Machine(tmp_path, instance_store=8, dlami=dlami)
    assert machine.boot(COMPUTE) == names(COMPUTE)
    assert machine.ready
    machine.reboot()
    assert not machine.ready
    assert {"/scratch", "/fsx"} <= set(machine.mounts)
    assert machine.boot(COMPUTE, first=False) == ["mount-scratch", "mount-lustre", "tune-lustre", "admit-jobs"]
    assert machine.ready
    assert machine.commands("mdadm", "mkfs.xfs", "mount", "curl", "python3") == []


@pytest.mark.parametrize(
    ("failing", "step"),
    [
        ("apt-mark", "hold-kernel"),
        ("mkfs.xfs", "mount-scratch"),
        ("curl", "set-up-lustre-efa"),
        ("lnetctl", "mount-lustre"),
        ("lctl", "tune-lustre"),
    ],
)
def test_a_node_on_which_a_step_fails_admits_no_job(machine, failing, step):
    done = machine.boot(COMPUTE, **{failing: "exit 1"})
    assert done == names(COMPUTE)[: names(COMPUTE).index(step)]
    assert not machine.ready


@pytest.mark.parametrize(("lost", "step"), [("mount", "mount-scratch"), ("lnetctl", "mount-lustre")])
def test_a_node_that_loses_a_mount_at_a_reboot_admits_no_job(machine, lost, step):
    machine.boot(COMPUTE)
    machine.reboot(**{lost: "exit 1"})
    assert step not in machine.boot(COMPUTE, first=False, **{lost: "exit 1"})
    assert not machine.ready


def test_the_kernel_is_held_with_lustre_on_ubuntu(machine):
    assert machine.run(Step("hold-kernel")).returncode == 0
    assert machine.commands("apt-mark") == [
        "apt-mark hold linux-aws linux-headers-aws linux-image-6.17.0-1005-aws lustre-client-modules-aws "
        "lustre-client-utils"
    ]


def test_holding_the_kernel_waits_for_an_unattended_upgrade(machine):
    locked = 'test -e "$ROOT/unlocked" || { : > "$ROOT/unlocked"; exit 1; }'
    assert machine.run(Step("hold-kernel"), **{"apt-mark": locked}).returncode == 0
    assert len(machine.commands("apt-mark")) == 2


def test_the_kernel_is_held_with_lustre_on_amazon_linux(tmp_path):
    machine = Machine(tmp_path, apt=False)
    for _ in range(2):
        assert machine.run(Step("hold-kernel")).returncode == 0
    assert machine.read("etc/dnf/dnf.conf") == "[main]\ngpgcheck=True\nexcludepkgs=kernel*,lustre-client*\n"


def test_the_parts_are_one_mime_multipart_document():
    document = message_from_string(compute_node_user_data())
    kinds = [part.get_content_type() for part in document.walk()]
    assert kinds == ["multipart/mixed", "text/cloud-boothook", "text/x-shellscript"]
    assert not document.defects


@pytest.mark.parametrize("text", [login_node_user_data(), compute_node_user_data()])
def test_unattended_upgrades_leave_slurmd_running_and_the_kernel_alone(machine, text):
    _, content = parts(text)[0]
    for _ in range(2):
        assert machine.run(content).returncode == 0
    assert machine.read("etc/needrestart/conf.d/slurmd.conf") == "$nrconf{override_rc}{qr(^slurmd)} = 0;\n"
    assert '"linux-"; "lustre-client"' in machine.read("etc/apt/apt.conf.d/52hold-kernel")


@pytest.mark.parametrize("text", [login_node_user_data(), compute_node_user_data()])
def test_no_part_can_replace_one_of_pcs(text):
    """cloud-init merges cloud-config parts key by key, and the last one wins."""
    kinds = [kind for kind, _ in parts(text)]
    assert kinds[0] == "text/cloud-boothook"
    assert "text/cloud-config" not in kinds


def test_slurmd_of_a_compute_node_starts_only_after_the_last_step(machine):
    _, (_, fence) = parts(compute_node_user_data())
    machine.write("etc/systemd/system/slurmd.service", "[Service]\nExecStart=/usr/bin/true\n")
    assert machine.run(fence).returncode == 0
    assert machine.systemctl("start", "slurmd.service") != 0
    assert machine.run(Step("admit-jobs")).returncode == 0
    assert machine.systemctl("start", "slurmd.service") == 0
    machine.reboot()
    assert machine.systemctl("start", "slurmd.service") != 0


def test_a_login_node_is_not_fenced():
    assert "slurmd.service" not in login_node_user_data()


@pytest.mark.parametrize("shared", [True, False])
def test_users_exist_on_a_compute_node_before_jobs_do(shared):
    source = UserSource("/ultracluster/test/users", "us-east-2", shared_homes=shared)
    found = compute_node_steps(group("p5.4xlarge"), [OVER_EFA], users=source)
    assert names(found).index("mount-lustre") < names(found).index("create-users") < names(found).index("admit-jobs")
    (step,) = [each for each in found if each.name == "create-users"]
    assert step.arguments == (source.parameter, source.region, "shared" if shared else "local")
    assert (step.required, step.frequency) == (True, "every_boot")
