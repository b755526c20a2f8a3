"""Jobs for queues: what is refused and why, and what the scripts hold."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.synthesis import ROOT
from ultracluster import load
from ultracluster.config.environment import Environment
from ultracluster.jobs.request import JobRefused, Script
from ultracluster.slurm.jobs import cpu_job, gpu_job
from ultracluster.slurm.parts import pyxis_image
from ultracluster.slurm.sbatch import sbatch_script

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
FLEET = ROOT / "examples/slurm-whole-fleet.yaml"
GB200 = ROOT / "examples/u-p6e-gb200x72.yaml"
FROM_FOLDER = {"files": "https://software.example.com/containers", "sha256": "0" * 64}
ONE_GPU = ROOT / "examples/p5.4xlarge.yaml"


def fleet(**changes):
    """The whole fleet with changes of its sections, dotted."""
    document = yaml.safe_load(FLEET.read_text())
    for path, value in changes.items():
        *sections, key = path.split("__")
        section = document
        for name in sections:
            section = section[int(name) if name.isdigit() else name]
        section[key] = value
    return Environment.model_validate(document)


def printed(job):
    return sbatch_script(job, "ultracluster job FILE")


def options(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


@pytest.mark.parametrize(
    ("wish", "refusal"),
    [
        (
            {"gpus": 8, "queue": "trian"},
            "trian is not a queue of slurm-fleet; allowed: train, eval, prep. Did you mean train?",
        ),
        ({"gpus": 72}, "72 GPUs are 9 nodes of p5en.48xlarge: queue train has 7 and 1 spare; request at most 56 GPUs"),
        ({"gpus": 12}, "12 GPUs are not whole nodes: p5en.48xlarge has 8; request 8 or 16"),
        ({"gpus": 0}, "0 GPUs are not whole nodes: p5en.48xlarge has 8; request 8"),
        (
            {"gpus": 8, "queue": "prep"},
            "prep has no GPUs; use --kind prepare --cpus N for CPU nodes, or a queue with GPUs: train, eval",
        ),
        (
            {"gpus": 8, "node_group": "evla"},
            "evla is not a node group of slurm-fleet; allowed: train, eval, prep. Did you mean eval?",
        ),
        (
            {"gpus": 8, "queue": "train", "node_group": "eval"},
            "eval is not a node group of queue train; allowed: train",
        ),
        (
            {"gpus": 8, "image": "mine:1"},
            "--image requires containers; set control_plane.containers: true, or use --venv",
        ),
        ({"gpus": 2, "kind": "nccl-test", "queue": "eval"}, "nccl-test takes whole nodes: g6e.12xlarge has 4 GPUs"),
        ({"gpus": 4}, "4 GPUs are a part of a node: queue train gives whole nodes of 8"),
        (
            {"gpus": 8, "team": "reserch"},
            "reserch is not a team; allowed: pretrain, research, evaluation. Did you mean research?",
        ),
        (
            {"gpus": 8, "team": "evaluation"},
            "evaluation may not use queue train: it has eval, prep; pass another --queue, or add train to its "
            "node_groups",
        ),
        (
            {"gpus": 40, "team": "research"},
            "40 GPUs exceed max_gpus of research; request 32 or fewer",
        ),
        (
            {"gpus": 8, "kind": "nccl-test", "command": ["a"]},
            "nccl-test has its own command; remove --command, or use --kind train",
        ),
        (
            {"gpus": 8, "kind": "nccl-test", "script": Script("a.py", "1\n")},
            "nccl-test has its own command; remove --script, or use --kind train",
        ),
        ({"gpus": 8, "kind": "nccl-test", "venv": "a"}, "nccl-test uses no virtual environment; remove --venv"),
        ({"gpus": 2, "kind": "nccl-pairs", "queue": "eval"}, "nccl-pairs takes whole nodes: g6e.12xlarge has 4 GPUs"),
        (
            {"gpus": 8, "kind": "nccl-pairs"},
            "nccl-pairs measures pairs of nodes: p5en.48xlarge has 8 GPUs, so request at least 16, or all nodes of the "
            "group",
        ),
        (
            {"gpus": 16, "kind": "nccl-pairs", "queue": "prep"},
            "prep has no GPUs; use --kind prepare --cpus N for CPU nodes, or a queue with GPUs: train, eval",
        ),
        (
            {"gpus": 16, "kind": "nccl-pairs", "command": ["a"]},
            "nccl-pairs has its own command; remove --command, or use --kind train",
        ),
        (
            {"gpus": 16, "kind": "nccl-pairs", "script": Script("a.py", "1\n")},
            "nccl-pairs has its own command; remove --script, or use --kind train",
        ),
        ({"gpus": 16, "kind": "nccl-pairs", "venv": "a"}, "nccl-pairs uses no virtual environment; remove --venv"),
        (
            {"gpus": 8, "name": "My_job"},
            "'My_job' is not a valid job name; allowed: a letter, then lower-case letters, digits and -, "
            "at most 40 characters, no - at the end",
        ),
        (
            {"cpus": 97},
            "97 CPUs do not fit: prepare runs on one c7i.48xlarge or m7i.48xlarge; request 1 to 96 CPUs",
        ),
        ({"cpus": 0}, "0 CPUs do not fit: prepare runs on one c7i.48xlarge or m7i.48xlarge; request 1 to 96 CPUs"),
        ({"cpus": 8, "queue": "train"}, "train has GPUs, which prepare does not use; use a queue of CPU nodes: prep"),
    ],
)
def test_what_the_fleet_cannot_run_is_refused(wish, refusal):
    with pytest.raises(JobRefused) as refused:
        (gpu_job if "gpus" in wish else cpu_job)(load(FLEET), **wish)
    assert str(refused.value) == refusal


@pytest.mark.parametrize(
    ("changes", "wish", "refusal"),
    [
        (
            {"control_plane__queues__1__slurm_settings": {"OverSubscribe": "EXCLUSIVE"}},
            {"gpus": 2, "queue": "eval"},
            "2 GPUs are a part of a node: queue eval gives whole nodes of 4",
        ),
        (
            {"control_plane__queues__1__node_groups": ["eval", "train"]},
            {"gpus": 4, "queue": "eval"},
            "the nodes of queue eval differ in size (g6e.12xlarge, p5en.48xlarge); use a queue with nodes of one size",
        ),
        (
            {"health": {"spares": {"train": 2}}},
            {"gpus": 56},
            "56 GPUs are 7 nodes of p5en.48xlarge: queue train has 6 and 2 spares; request at most 48 GPUs",
        ),
        (
            {"node_groups__1__interfaces": "without_efa"},
            {"gpus": 8, "kind": "nccl-pairs", "queue": "eval"},
            "nccl-pairs measures EFA, and these nodes of g6e.12xlarge have none; use nodes with EFA",
        ),
        (
            {"storage": {}},
            {"gpus": 8},
            "slurm-fleet has no shared file system, so nodes cannot read the files of a login node; "
            "add storage.lustre or storage.home",
        ),
        (
            {"control_plane__accounting": False, "control_plane__teams": []},
            {"gpus": 8, "team": "research"},
            "without accounting Slurm has no accounts; remove --team, or set control_plane.accounting: true",
        ),
    ],
)
def test_what_the_file_does_not_allow_is_refused(changes, wish, refusal):
    with pytest.raises(JobRefused) as refused:
        gpu_job(fleet(**changes), **wish)
    assert str(refused.value) == refusal


def test_a_part_of_an_ultraserver_node_is_refused():
    with pytest.raises(JobRefused) as refused:
        gpu_job(load(GB200), 2)
    assert str(refused.value) == "2 GPUs are a part of a node: jobs on p6e-gb200.36xlarge take whole nodes of 4"


def test_a_group_that_no_queue_has_alone_is_refused():
    with pytest.raises(JobRefused) as refused:
        gpu_job(load(ONE_GPU), 1, node_group="spot")
    assert str(refused.value) == (
        "no queue has spot alone, and a job cannot choose within a queue; use --queue all without --node-group, "
        "or add a queue for spot"
    )
    assert gpu_job(load(ONE_GPU), 1, node_group="steady").queue.name == "steady"
    assert gpu_job(load(ONE_GPU), 20, queue="all").spares == 0


def test_kubernetes_takes_no_sbatch():
    with pytest.raises(JobRefused, match="staging runs Kubernetes on EKS, which takes no sbatch scripts"):
        gpu_job(load(ROOT / "environments/staging.yaml"), 8)


@pytest.mark.parametrize(
    ("path", "content", "kind", "said"),
    [
        ("a.sh", b"x", "train", "train starts *.py"),
        ("a.r", b"x", "prepare", "prepare starts *.py or *.sh"),
        ("a b.py", b"x", "train", "rename it"),
        ("watch_job.py", b"x", "train", "rename it"),
        ("a.py", b" \n", "train", "it is empty"),
        ("a.py", b"\xff\xfe", "train", "it is not text in UTF-8"),
        ("a.py", b"a\0b", "train", "it is not text"),
        ("a.py", b"x" * 500_001, "train", "500001 bytes; a job contains at most 500000"),
    ],
)
def test_a_script_that_a_job_cannot_carry_is_refused(path, content, kind, said):
    with pytest.raises(JobRefused, match=r"^--script ") as refused:
        Script.checked(path, content, kind)
    assert said in str(refused.value)


def test_whole_nodes_are_exclusive_and_can_be_replaced():
    text = printed(gpu_job(load(FLEET), 32, team="research"))
    assert {"--nodes=4", "--gpus-per-node=8", "--exclusive", "--requeue", "--account=research"} <= {*options(text)}
    assert "--spares 3 --" in text
    assert "srun --nodes=4 --ntasks=4 --ntasks-per-node=1" in text


def test_a_part_of_a_node_leaves_the_rest_to_others():
    text = printed(gpu_job(load(FLEET), 3, queue="eval"))
    assert {"--nodes=1", "--gpus-per-node=3", "--cpus-per-task=18"} <= {*options(text)}
    assert "--exclusive" not in options(text)
    assert "MASTER_PORT=$((29500 + SLURM_JOB_ID % 1000))" in text  # two jobs on a node have two ports


@pytest.mark.parametrize(("gpus", "segments"), [(36, ["9"]), (72, ["18"]), (4, []), (76, [])])
def test_jobs_on_ultraservers_name_their_segment_unless_it_is_one_node(gpus, segments):
    found = options(printed(gpu_job(load(GB200), gpus, venv="venv")))
    assert [option.removeprefix("--segment=") for option in found if "segment" in option] == segments


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("public.ecr.aws/deep-learning-containers/pytorch:2", "public.ecr.aws#deep-learning-containers/pytorch:2"),
        ("localhost:5000/a:1", "localhost:5000#a:1"),
        ("ubuntu:24.04", "ubuntu:24.04"),
        ("library/ubuntu", "library/ubuntu"),
        ("nvcr.io#nvidia/pytorch:26.01", "nvcr.io#nvidia/pytorch:26.01"),
        ("docker://nvcr.io/nvidia/pytorch:26.01", "nvcr.io#nvidia/pytorch:26.01"),
        ("docker://ubuntu:24.04", "ubuntu:24.04"),
        ("/fsx/images/a.sqsh", "/fsx/images/a.sqsh"),
        ("./a.sqsh", "./a.sqsh"),
    ],
)
def test_images_have_the_form_of_pyxis(image, named):
    assert pyxis_image(image) == named


def test_a_cluster_with_containers_runs_awss_image_unless_one_or_a_venv_is_given():
    environment = fleet(control_plane__containers=FROM_FOLDER)
    assert gpu_job(environment, 16).image == "public.ecr.aws/deep-learning-containers/pytorch:2.14.0-cu133-amzn2023"
    assert "nccl-tests" in gpu_job(environment, 16, kind="nccl-test").image
    assert gpu_job(environment, 16, image="mine:1").image == "mine:1"
    assert gpu_job(environment, 16, venv="venv").image is None
    assert cpu_job(environment, 4).image is None
    with pytest.raises(JobRefused, match="--image and --venv exclude each other: a container has its own Python"):
        gpu_job(environment, 16, image="mine:1", venv="venv")


@pytest.mark.parametrize(
    ("venv", "line"),
    [
        (None, ""),
        ("venv", 'export PATH="$PWD/venv/bin:$PATH"'),
        ("/fsx/my env", 'export PATH="/fsx/my env/bin:$PATH"'),
        ("a$b", 'export PATH="$PWD/a\\$b/bin:$PATH"'),
    ],
)
def test_a_preparation_has_a_virtual_environment_where_one_is_given(venv, line):
    text = printed(cpu_job(load(FLEET), 4, venv=venv, command=("tokenize", "a")))
    assert [each for each in text.splitlines() if "export PATH" in each] == [line][: bool(venv)]
    assert ("the virtual environment" in text) is bool(venv)
    assert f"with tokenize{f' and the virtual environment {venv}' if venv else ''}:" in text


def test_an_ultraserver_needs_an_image_of_ones_own():
    document = yaml.safe_load(GB200.read_text())
    document["control_plane"]["containers"] = FROM_FOLDER
    with pytest.raises(JobRefused, match=r"^no public image of AWS meets the minimum versions of p6e-gb200\.36xlarge"):
        gpu_job(Environment.model_validate(document), 72)


def in_container(gpus, **changes):
    job = gpu_job(load(FLEET), gpus, venv=None if changes.get("kind") == "nccl-test" else "venv")
    return replace(job, image="public.ecr.aws/deep-learning-containers/pytorch:2.14.0-cu133-amzn2023", **changes)


def test_a_container_gets_every_variable_and_mount_from_srun_alone():
    text = printed(in_container(16))
    assert not any("container" in line for line in options(text))  # the script itself would be in the container
    assert "--container-image='public.ecr.aws#deep-learning-containers/pytorch:2.14.0-cu133-amzn2023'" in text
    assert "--container-mounts=/fsx:/fsx,/scratch:/scratch" in text
    assert "--no-container-mount-home" in text
    (forced,) = (word for line in text.splitlines() for word in line.split() if word.startswith("--container-env="))
    names = forced.removeprefix("--container-env=").split(",")
    exported = [line.split()[1].partition("=")[0] for line in text.splitlines() if line.startswith("    export ")]
    assert {"FI_PROVIDER", "NCCL_NET", "NCCL_NET_PLUGIN", "NVIDIA_DRIVER_CAPABILITIES", "JOB_FOLDER"} <= {*names}
    assert {*exported} <= {*names}
    assert "exec torchrun --nnodes 2" in text
    assert (
        "TORCH_NCCL_TRACE_BUFFER_SIZE" not in text.partition("write_watch_job() {")[0]
    )  # this PyTorch has newer names


def test_the_network_test_in_a_container_starts_a_process_for_each_gpu():
    text = printed(in_container(16, kind="nccl-test"))
    assert "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --mpi=pmix" in text
    assert "/opt/nccl-tests/build/all_reduce_perf -b 8 -e 16G" in text


def pairs(text):
    """The command of a pair, and what comes before the program."""
    before = text.partition("write_pair_nodes() {")[0]
    return before.partition(" -- ")[2], before


def test_pairs_of_nodes_use_two_of_them_and_a_ring_over_efa():
    command, before = pairs(printed(gpu_job(load(FLEET), 56, kind="nccl-pairs")))
    assert '"$mpirun" --bind-to none --host "{first}:8,{second}:8" -np 16 -N 8' in command
    assert "-x NCCL_NET -x NCCL_NET_PLUGIN -x NCCL_DEBUG -x NCCL_ALGO" in command
    assert '"$test" -b 16G -e 16G' in command
    assert "    export NCCL_ALGO=Ring\n" in before
    assert "MNNVL" not in before
    assert "--type p5en.48xlarge --floor 0 --seconds 300" in before  # no figure was published


def test_pairs_in_a_container_import_it_once():
    command, before = pairs(printed(in_container(16, kind="nccl-pairs")))
    name = '--container-name="$SLURM_JOB_ID.pairs"'
    assert '--nodes=2 "--nodelist={first},{second}"' in command
    assert "--ntasks=16 --ntasks-per-node=8 --mpi=pmix" in " ".join(command.replace("\\\n", "").split())
    assert "NCCL_ALGO,NVIDIA_VISIBLE_DEVICES" in command
    first, _, _ = before.partition("export FI_PROVIDER")
    assert '--ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1' in first
    assert name in first
    assert name in command


def test_pairs_of_a_type_with_a_published_figure_are_judged_by_the_line_rate_of_efa():
    text = printed(gpu_job(load(ROOT / "examples/p5.48xlarge.yaml"), 16, kind="nccl-pairs"))
    assert "--type p5.48xlarge --floor 320 " in text


def test_pairs_of_ultraserver_nodes_are_measured_over_efa_and_not_judged():
    text = printed(replace(gpu_job(load(GB200), 72, venv="venv"), kind="nccl-pairs", venv="venv"))
    assert "    export NCCL_MNNVL_ENABLE=0\n" in text
    assert "-x NCCL_ALGO -x NCCL_MNNVL_ENABLE" in text
    assert "--type p6e-gb200.36xlarge --floor 0 " in text


NASTY = ("it's.py", "$HOME", "`id`", "a\\b", 'say "x"', "#", "*", "two\nlines", "END", "${x}", "!", '"$(id)"')


@pytest.mark.parametrize("kind", ["train", "prepare", "nccl-test", "nccl-pairs"])
@pytest.mark.parametrize("container", [False, True])
def test_shellcheck_finds_nothing_in_any_script(tmp_path, kind, container):
    environment = fleet(storage__home={"type": "efs"})
    if kind == "prepare":
        jobs = [cpu_job(environment, 4, command=NASTY)]
        jobs.append(replace(jobs[0], script=Script("a.sh", "END\ncat <<'END'\n"), venv="/fsx/it's mine"))
    else:
        jobs = [gpu_job(environment, gpus, kind=kind, queue="train") for gpus in (16, 56)]
        if kind == "train":
            jobs = [replace(job, command=NASTY) for job in (*jobs, gpu_job(environment, 1, queue="eval"))]
            jobs.append(replace(jobs[0], script=Script("a.py", "END\n"), venv="/fsx/it's mine"))
    for number, job in enumerate(jobs):
        changed = replace(job, image="/fsx/it's mine.sqsh") if container else job
        (tmp_path / f"{number}.sbatch").write_text(printed(changed))
    checked = subprocess.run([SHELLCHECK, *tmp_path.iterdir()], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_words_of_a_command_arrive_as_they_are(tmp_path):
    text = printed(cpu_job(load(FLEET), 4, command=["printf", "%s\\0", *NASTY]))
    command = text.partition("srun ")[2].partition("\\\n")[2]
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == [*NASTY]
