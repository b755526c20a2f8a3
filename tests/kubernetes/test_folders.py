"""Jobs that create the folders of teams, run by a real shell."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.environments import P5, SCHEDULERS, eks_environment
from tests.kubernetes.test_volumes import BUCKETS, DEPLOYED, ENVIRONMENT, TEAMS, linked
from ultracluster.kubernetes.folders import FOLDERS, MOUNT, NAMESPACE
from ultracluster.kubernetes.volumes import volumes


def jobs(environment=ENVIRONMENT):
    """Jobs by the name of their set."""
    return {
        found.name: item for found in volumes(environment, DEPLOYED) for item in found.items if item["kind"] == "Job"
    }


def pod(job):
    return job["spec"]["template"]["spec"]


def run(job, root: Path, timeout=300) -> str:
    """Runs the Job's script on `root`, with a chown that only writes down what it is asked. Returns that."""
    tools = root / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "chown").write_text(f'#!/bin/sh\necho "$@" >> {root}/owners\n')
    (tools / "chown").chmod(0o755)
    (container,) = pod(job)["containers"]
    *shell, script = container["command"]
    environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    lustre = root / "lustre"
    lustre.mkdir(exist_ok=True)
    subprocess.run(
        [*shell, script.replace(MOUNT, str(lustre))], check=True, env=environment, timeout=timeout, capture_output=True
    )
    return (root / "owners").read_text()


def test_a_team_without_a_user_gets_a_folder_like_tmp(tmp_path):
    owners = run(jobs()["volume-training.c"], tmp_path)
    folder = tmp_path / "lustre" / "teams" / "c"
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert owners == f"0:0 {folder}\n"
    assert (tmp_path / "lustre" / "teams").stat().st_mode & 0o7777 == 0o755


def test_a_team_with_a_user_owns_its_folder_and_new_files_get_its_group(tmp_path):
    owners = run(jobs()["volume-training.b-c"], tmp_path)
    folder = tmp_path / "lustre" / "teams" / "b-c"
    assert folder.stat().st_mode & 0o7777 == 0o2770
    assert owners == f"2001:2002 {folder}\n"


def test_linked_folders_have_mount_points_in_the_team_s_folder(tmp_path):
    run(jobs()["volume-training.c"], tmp_path)
    assert {path.name for path in (tmp_path / "lustre" / "teams" / "c").iterdir()} == {"a", "out", "both"}


def test_a_second_run_changes_nothing(tmp_path):
    job = jobs()["volume-training.c"]
    run(job, tmp_path)
    (tmp_path / "lustre" / "teams" / "c" / "kept").write_text("data")
    run(job, tmp_path)
    assert (tmp_path / "lustre" / "teams" / "c" / "kept").read_text() == "data"


def test_a_folder_in_a_link_waits_for_the_link(tmp_path):
    job = jobs()["volume-out-link.c"]
    with pytest.raises(subprocess.TimeoutExpired):
        run(job, tmp_path, timeout=1)
    assert not (tmp_path / "lustre" / "out").exists()
    (tmp_path / "lustre" / "out").mkdir()
    run(job, tmp_path)
    assert (tmp_path / "lustre" / "out" / "teams" / "c").stat().st_mode & 0o7777 == 0o1777


def test_a_failed_step_fails_the_job(tmp_path):
    (tmp_path / "lustre").mkdir()
    (tmp_path / "lustre" / "teams").write_text("no folder")
    with pytest.raises(subprocess.CalledProcessError):
        run(jobs()["volume-training.c"], tmp_path)


def test_a_link_that_only_imports_needs_no_folder():
    assert "volume-a-link.c" not in jobs()


def test_jobs_run_as_root_on_system_nodes_outside_the_teams_namespaces():
    for job in jobs().values():
        (container,) = pod(job)["containers"]
        assert job["metadata"]["namespace"] == NAMESPACE
        assert container["securityContext"]["runAsUser"] == 0
        assert pod(job)["nodeSelector"] == {"ultracluster/node-group": "system"}
        assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in pod(job)["tolerations"]
        assert pod(job)["automountServiceAccountToken"] is False


def test_the_namespace_allows_what_the_pod_standard_baseline_allows():
    """Baseline allows these capabilities and no privileged container (Kubernetes, "Pod Security Standards")."""
    allowed = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "SETGID", "SETUID", "SYS_CHROOT"}
    (folders,) = (found for found in volumes(ENVIRONMENT, DEPLOYED) if found.name == FOLDERS)
    namespace = folders.items[0]
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "baseline"}
    for job in jobs().values():
        context = pod(job)["containers"][0]["securityContext"]
        assert set(context["capabilities"]["add"]) <= allowed
        assert "privileged" not in context


def test_a_changed_job_has_another_name_because_its_template_is_immutable():
    other = [{**TEAMS[0], "user": "1:1"}, TEAMS[1]]
    changed = jobs(linked(eks_environment(P5, lustre=True, buckets=BUCKETS, teams=other)))
    before, after = jobs()["volume-training.c"], changed["volume-training.c"]
    assert before["spec"] != after["spec"]
    assert before["metadata"]["name"] != after["metadata"]["name"]
    assert jobs()["volume-training.b-c"] == changed["volume-training.b-c"]


def test_a_folder_is_created_before_the_volume_that_mounts_it():
    for found in volumes(ENVIRONMENT, DEPLOYED):
        kinds = [item["kind"] for item in found.items]
        assert "Job" not in kinds or kinds.index("Job") == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_jobs_wait_for_the_webhook_that_kueue_has_for_jobs(scheduler):
    environment = eks_environment(P5, lustre=True, buckets=BUCKETS, scheduler=scheduler)
    (own,) = (found for found in volumes(environment, DEPLOYED) if found.name == "volume-training.research")
    assert ("kueue" in own.after) == scheduler.startswith("kueue")


def test_a_mirror_holds_the_image_too():
    mirror = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror"
    environment = eks_environment(P5, lustre=True, buckets=BUCKETS, chart_mirror=mirror)
    (job,) = jobs(environment).values()
    (container,) = pod(job)["containers"]
    assert container["image"].startswith("111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror/docker/library/busybox:")
