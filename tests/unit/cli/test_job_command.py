"""`ultracluster job`: output, exit codes, imports."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import yaml
from typer.testing import CliRunner

from tests.bad_files import FOLDER, file_of
from ultracluster.cli import app

HEAVY = {"aws_cdk", "jsii", "boto3", "botocore", "moto", "cfnlint", "rich"}
JOB = ("job", "minimal-eks.yaml", "--team", "research", "--gpus", "16", "--name", "first")


def ultracluster(*arguments):
    """Runs the command as a user does."""
    command = [sys.executable, "-c", "from ultracluster.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)


def test_the_job_is_yaml_for_kubectl():
    done = ultracluster(*JOB)
    assert (done.returncode, done.stderr) == (0, "")
    service, job, files = yaml.safe_load_all(done.stdout)
    assert (service["kind"], job["kind"], files["kind"]) == ("Service", "Job", "ConfigMap")
    assert job["metadata"] == {
        "name": "first",
        "namespace": "research",
        "labels": {"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "normal"},
    }
    assert job["spec"]["completions"] == 2
    assert "&id" not in done.stdout


def test_each_job_gets_a_name_of_its_own():
    names = {list(yaml.safe_load_all(ultracluster(*JOB[:-2]).stdout))[1]["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"train-16-gpus-[b-z2-9]{5}", name) for name in names)


def test_json_is_a_list_for_kubectl():
    done = ultracluster(*JOB, "--json")
    found = json.loads(done.stdout)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert found["items"] == list(yaml.safe_load_all(ultracluster(*JOB).stdout))


def test_a_default_image_without_patches_is_warned_of(monkeypatch):
    monkeypatch.setattr("ultracluster.config.clock.now", lambda: datetime(2027, 9, 29, tzinfo=UTC))
    arguments = [JOB[0], str(FOLDER / JOB[1]), *JOB[2:]]
    done = CliRunner().invoke(app, arguments)
    assert done.stderr == "warning: AWS stopped patching the default image on 2027-09-28; set --image\n"
    assert CliRunner().invoke(app, [*arguments, "--image", "mine:1"]).stderr == ""


def test_node_group_and_image_can_be_set():
    (_, job, _) = yaml.safe_load_all(ultracluster(*JOB, "--node-group", "train", "--image", "mine:1").stdout)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"ultracluster/node-group": "train"}
    assert pod["containers"][0]["image"] == "mine:1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("minimal-eks.yaml", "--gpus", "8"), "a job on EKS needs --team NAME; teams: research"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--queue", "a"), "--queue is for Slurm"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--venv", "a"), "--venv is for Slurm"),
        (("minimal.yaml", "--gpus", "8", "--json"), "--json is for Kubernetes, and"),
        (("minimal.yaml", "--gpus", "8", "--script", "none.py"), "--script none.py: No such file or directory"),
        (("minimal.yaml",), "train needs --gpus N"),
        (("minimal-eks.yaml", "--team", "research", "--kind", "nccl-pairs"), "nccl-pairs needs --gpus N"),
        (("minimal.yaml", "--gpus", "8", "--cpus", "4"), "train takes --gpus, not --cpus"),
        (("minimal.yaml", "--kind", "prepare", "--gpus", "8", "--cpus", "4"), "prepare takes --cpus, not --gpus"),
        (("minimal.yaml", "--gpus", "8", "--name", ""), "--name is empty"),
        (("minimal.yaml", "--gpus", "8", "--queue", " "), "--queue is empty"),
        (("minimal.yaml", "--gpus", "8", "--image", ""), "--image is empty"),
        (("minimal.yaml", "--gpus", "8", "--image", "a b"), "'a b' is not an image; write REGISTRY/NAME:TAG"),
        (
            ("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--image", "/fsx/x.sqsh"),
            "is no image of a registry",
        ),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--image", "My/Image"), "is no image of a registry"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--image", "docker://a/b"), "is no image of a"),
        (("minimal.yaml", "--gpus", "8", "--script", "/dev/zero"), "it is not a regular file"),
        (("minimal.yaml", "--gpus", "8", "--script", "faults"), "it is not a regular file"),
        (("minimal.yaml", "--gpus", "8", "--venv", "a\nb"), "--venv contains a line break"),
        (("minimal.yaml", "--gpus", "8", "--command", "a.py 'x\ntouch y'"), "--command contains a line break"),
        (("minimal.yaml\n", "--gpus", "8"), "FILE contains a line break"),
        (("minimal.yaml", "--kind", "nccl-pairs"), "nccl-pairs needs --gpus N"),
        (("minimal.yaml", "--kind", "nccl-pair", "--gpus", "16"), "nccl-pairs"),
        (("minimal-eks.yaml", "--team", "reserch", "--gpus", "8"), "Did you mean research?"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "12"), "request 8 or 16"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "24"), "train has 16"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--name", "My_job"), "'My_job' is not a valid"),
        (("../../../examples/eks-gb200.yaml", "--team", "pretrain", "--gpus", "72"), "pass it with --image"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "8", "--node-group", "b"), "b is not a node group"),
        (("minimal-eks.yaml", "--team", "research", "--gpus", "many"), "valid integer"),
        (("minimal-eks.yaml", "--team", "research"), "--gpus"),
    ],
)
def test_an_impossible_job_is_wrong_usage(arguments, said):
    done = ultracluster("job", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_with_errors_is_reported():
    done = ultracluster("job", file_of("quota-above-fleet"), "--team", "research", "--gpus", "8")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[quota-above-fleet]" in done.stderr


def test_it_imports_neither_the_cdk_nor_boto3():
    program = f"import sys; sys.argv[1:] = {list(JOB)!r}; import atexit; from ultracluster.cli import main; "
    program += "atexit.register(lambda: print(*sys.modules)); main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=FOLDER, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("apiVersion:")
    assert {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}.isdisjoint(HEAVY)


def test_a_preparation_needs_cpus_and_gets_a_name():
    arguments = ("job", "minimal-eks.yaml", "--team", "research", "--kind", "prepare")
    assert "prepare needs --cpus N" in ultracluster(*arguments).stderr
    (job,) = yaml.safe_load_all(ultracluster(*arguments, "--cpus", "4").stdout)
    assert re.fullmatch(r"prepare-4-cpus-[b-z2-9]{5}", job["metadata"]["name"])


@pytest.mark.parametrize("kind", ["nccl-test", "nccl-pairs"])
def test_tests_of_nccl_need_the_mpi_operator(kind):
    done = ultracluster("job", "minimal-eks.yaml", "--team", "research", "--gpus", "16", "--kind", kind)
    assert (done.returncode, done.stderr) == (2, f"{kind} is an MPIJob; add mpi to control_plane.jobs\n")


def test_the_command_is_what_torchrun_starts():
    job = list(yaml.safe_load_all(ultracluster(*JOB, "--command", "/fsx/run.py --name 'a b' -m").stdout))[1]
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--") + 1] == "torchrun"
    assert command[-4:] == ["/fsx/run.py", "--name", "a b", "-m"]
    assert not any("train.py" in word for word in command)


def test_the_command_is_that_of_a_job_on_cpus():
    arguments = ("job", "minimal-eks.yaml", "--team", "research", "--kind", "prepare", "--cpus", "4")
    [job] = yaml.safe_load_all(ultracluster(*arguments, "--command", "bash tokenize.sh").stdout)
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["bash", "tokenize.sh"]


@pytest.mark.parametrize(
    ("command", "message"), [("", "it is empty"), ("a 'b", "no closing quotation"), ("  ", "it is empty")]
)
def test_a_command_that_is_none_is_wrong_usage(command, message):
    done = ultracluster(*JOB, "--command", command)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_test_of_nccl_takes_no_command():
    done = ultracluster(*JOB, "--kind", "nccl-test", "--command", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "remove --command" in done.stderr


@pytest.mark.parametrize("option", ["--node-group", "--pool"])
def test_a_pool_of_karpenter_takes_a_job(tmp_path, option):
    pools = "  karpenter: {pools: [{name: eval, families: [g6e], limits: {gpus: 16}}]}\n  admins:"
    (tmp_path / "env.yaml").write_text((FOLDER / JOB[1]).read_text().replace("  admins:", pools))
    done = CliRunner().invoke(app, [JOB[0], str(tmp_path / "env.yaml"), *JOB[2:], option, "eval"])
    assert done.exit_code == 0
    *_, job, _ = yaml.safe_load_all(done.stdout)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"


def test_a_job_for_a_queue_is_a_script_for_sbatch():
    done = ultracluster("job", "../../../examples/slurm-whole-fleet.yaml", "--gpus", "16")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("#!/bin/bash\n# Trains on 2 nodes of queue train")
    assert "#SBATCH --job-name=train-16-gpus\n" in done.stdout


def test_a_script_is_in_the_job_for_a_queue(tmp_path):
    (tmp_path / "work.py").write_text("print('mine')")
    arguments = ("--gpus", "8", "--script", tmp_path / "work.py", "--command", "--lr 2")
    done = ultracluster("job", "../../../examples/slurm-whole-fleet.yaml", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nprint('mine')\nEND\n" in done.stdout
    assert '"$JOB_FOLDER/work.py" --lr 2\n' in done.stdout


def test_a_script_is_in_a_config_map_of_the_job(tmp_path):
    (tmp_path / "work.py").write_text("print('mine')\n")
    done = ultracluster(*JOB, "--script", tmp_path / "work.py", "--command", "--lr 2")
    assert (done.returncode, done.stderr) == (0, "")
    _, job, files = yaml.safe_load_all(done.stdout)
    assert files["data"]["work.py"] == "print('mine')\n"
    assert "  work.py: |\n    print('mine')\n" in done.stdout
    assert job["spec"]["template"]["spec"]["containers"][0]["command"][-3:] == ["/job/work.py", "--lr", "2"]


@pytest.mark.parametrize(
    "image",
    [
        "nvcr.io/nvidia/pytorch:26.09-py3",
        "busybox",
        "localhost:5000/a/b_c/d-e",
        "111122223333.dkr.ecr.us-east-2.amazonaws.com/team/train@sha256:" + "0" * 64,
        "public.ecr.aws/deep-learning-containers/pytorch:2.14.0-cu133-amzn2023",
        "ghcr.io/a/b__c:V1.0_x",
    ],
)
def test_an_image_of_a_registry_is_in_the_job(image):
    done = ultracluster(*JOB, "--image", image)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"image: {image}\n" in done.stdout
