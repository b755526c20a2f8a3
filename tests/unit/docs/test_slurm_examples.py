"""The sbatch scripts of examples/slurm run: with stand-ins for Slurm, Open MPI and torchrun on the path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synthesis import ROOT
from ultracluster.catalog import catalog
from ultracluster.catalog.training import training_environment

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
FOLDER = ROOT / "examples" / "slurm"
SCRIPTS = sorted(file.name for file in FOLDER.glob("*.sbatch"))
REQUIRED = {key: value for key, value in training_environment(catalog["p5.48xlarge"]).items() if key != "NCCL_DEBUG"}


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def run(script, folder, **variables):
    path = f"{folder}/bin:{os.environ['PATH']}"
    command = ["bash", str(FOLDER / script)]
    return subprocess.run(command, env={"PATH": path, **variables}, capture_output=True, text=True, check=False)


def shown(output):
    """Variables that a stand-in printed as NAME=value."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def test_shellcheck_finds_nothing():
    done = subprocess.run([SHELLCHECK, *(FOLDER / name for name in SCRIPTS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS)
def test_sbatch_options_come_before_any_command(script):
    """sbatch stops reading options at the first command."""
    lines = (FOLDER / script).read_text().splitlines()
    options = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    commands = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert lines[0] == "#!/bin/bash"
    assert options
    assert max(options) < min(commands)


def test_the_nccl_test_runs_a_process_for_each_gpu_over_efa(tmp_path):
    program(tmp_path / "cuda-12.9" / "efa" / "test-cuda-12.9" / "all_reduce_perf", "true")
    newest = program(tmp_path / "cuda-13.2" / "efa" / "test-cuda-13.2" / "all_reduce_perf", "true")
    mpirun = program(tmp_path / "bin" / "mpirun", 'env; printf "%s\\n" "$@"')
    nodes = {"SLURM_NTASKS": "16", "SLURM_JOB_NUM_NODES": "2"}
    done = run("nccl-test.sbatch", tmp_path, CUDA_ROOT=str(tmp_path), MPIRUN=str(mpirun), **nodes)
    assert (done.returncode, done.stderr) == (0, "")
    words = done.stdout.splitlines()
    assert REQUIRED.items() <= shown(done.stdout).items()
    assert words[words.index("-np") + 1] == "16"
    assert words[words.index("-N") + 1] == "8"
    assert {words[i + 1] for i, word in enumerate(words) if word == "-x"} >= {"LD_LIBRARY_PATH", *REQUIRED}
    assert words.index(str(newest)) < words.index("16G")


def test_an_image_without_nccl_tests_fails_with_the_reason(tmp_path):
    done = run("nccl-test.sbatch", tmp_path, CUDA_ROOT=str(tmp_path), SLURM_NTASKS="16", SLURM_JOB_NUM_NODES="2")
    assert done.returncode == 1
    assert "this image has no NCCL tests" in done.stderr


def test_training_starts_torchrun_on_each_node_in_the_order_of_the_node_list(tmp_path):
    program(tmp_path / "bin" / "scontrol", 'printf "node-7\\nnode-9\\n"')
    steps = 'shift; for n in 0 1; do SLURM_NODEID=$n "$@"; done'
    program(tmp_path / "bin" / "srun", steps)
    program(tmp_path / "venv" / "bin" / "torchrun", 'env; echo "RUN $*"')
    nodes = {"SLURM_JOB_NODELIST": "node-[7,9]", "SLURM_JOB_NUM_NODES": "2"}
    done = run("train.sbatch", tmp_path, VENV=str(tmp_path / "venv"), **nodes)
    assert (done.returncode, done.stderr) == (0, "")
    assert REQUIRED.items() <= shown(done.stdout).items()
    assert [line for line in done.stdout.splitlines() if line.startswith("RUN")] == [
        f"RUN --nnodes 2 --nproc-per-node 8 --node-rank {rank} --master-addr node-7 --master-port 29500 "
        "/fsx/queues/train/train.py"
        for rank in (0, 1)
    ]
