"""sbatch scripts of jobs: plain programs of the nodes, or containers by Pyxis.

What the scripts rely on was tried on Slurm 22.05 and 26.05 with Pyxis 0.24: variables of a container image win over
those of the job unless --container-env names them; #SBATCH --container-image would put the script itself into the
container; a step inherits the number of tasks of the job; only static ranks keep Slurm's order of nodes.

Source: man pages of Slurm 25.11; documentation of Pyxis and Enroot; awsome-distributed-ai (2026).
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from ultracluster.catalog.health import pair_floor
from ultracluster.catalog.training import recorder_environment, training_environment
from ultracluster.jobs.wishes import (
    MAXIMUM_RESTARTS,
    PAIR_ARGUMENTS,
    PAIR_NODES,
    PAIR_SECONDS,
    RENDEZVOUS_PORT,
    STALLED_SECONDS,
    TESTS,
    WATCH_JOB,
    pair_environment,
    program,
)
from ultracluster.nodes.pcs import SCRATCH
from ultracluster.slurm.jobs import SlurmJob

NOTICE_SECONDS = 300
"""Time before the end of a job at which Slurm signals it."""

LARGEST_MESSAGE = "16G"
"""Largest message of the network test, at which AWS publishes bus bandwidths."""

TRAINING_SCRIPT, PREPARE_SCRIPT = "train.py", "prepare.py"

_CONTAINER_VARIABLES = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
"""Without them Enroot gives a container no GPUs, or no CUDA (Enroot, hook 98-nvidia.sh)."""


PAIRS_CONTAINER = '--container-name="$SLURM_JOB_ID.pairs"'
"""Steps of a job with the same name share the container of a node. The epilog removes it by the number of the job."""


def sbatch_script(job: SlurmJob, printed_by: str) -> str:
    """The script of a job. `printed_by` is the command that prints it again."""
    bodies = {"train": _train, "nccl-test": _nccl_test, "nccl-pairs": _nccl_pairs, "prepare": _prepare}
    return _joined(_header(job, printed_by), "set -euo pipefail", _shared_folder(job), bodies[job.kind](job))


def _joined(*parts: str) -> str:
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def _title(job: SlurmJob) -> str:
    nodes = _counted(job.nodes, "node")
    match job.kind:
        case "train":
            each = _counted(job.gpus_per_node, "GPU")
            return f"Trains on {nodes} of queue {job.queue.name} with {each}{' each' * (job.nodes > 1)}, by torchrun."
        case "nccl-test":
            return f"Measures all_reduce between {job.gpus} GPUs on {nodes} of queue {job.queue.name}."
        case "nccl-pairs":
            return f"Measures all_reduce between pairs of {nodes} of queue {job.queue.name}, and names slow nodes."
        case "prepare":
            return f"Prepares data with {job.cpus} CPUs of a node of queue {job.queue.name}."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number > 1 else ''}"


def _header(job: SlurmJob, printed_by: str) -> str:
    folder = _submit_folder(job)
    what = "" if job.kind in TESTS else f", with {_default(job)}"
    lines = [
        "#!/bin/bash",
        f"# {_title(job)}",
        f"# Printed by: {printed_by}",
        f"# Submit it on a login node, in a folder that all nodes share{what}:",
        f"#   cd {folder} && sbatch FILE",
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --partition={job.queue.name}",
        *([f"#SBATCH --account={job.account}"] if job.account else []),
        *_resources(job),
        "# The output is in this file of the folder. A restart appends to it.",
        "#SBATCH --output=%x-%j.out",
        "#SBATCH --open-mode=append",
        "# Limits are those of the nodes, where EFA may lock memory, and not those of the session that submits this.",
        "#SBATCH --propagate=NONE",
        "# When a node fails, Slurm starts the job again on others.",
        "#SBATCH --requeue",
    ]
    if job.kind == "train":
        lines += [
            f"# Before the job's time ends, by {NOTICE_SECONDS} seconds, Slurm signals it.",
            f"#SBATCH --signal=B:USR1@{NOTICE_SECONDS}",
        ]
    return "\n".join(lines)


def _submit_folder(job: SlurmJob) -> str:
    first = job.folders[0]
    return f"{first}/queues/{job.queue.name}" if job.environment.storage.lustre else first


def _default(job: SlurmJob) -> str:
    """What the folder has to hold."""
    environment = f"the virtual environment {job.venv}" if job.venv and not job.image else ""
    if job.script:
        return environment or "nothing else, since this file holds the script"
    script = job.command[0] if job.command else PREPARE_SCRIPT if job.kind == "prepare" else TRAINING_SCRIPT
    return f"{script} and {environment}" if environment else script


def _resources(job: SlurmJob) -> list[str]:
    if job.kind == "prepare":
        return ["#SBATCH --nodes=1", "#SBATCH --ntasks=1", f"#SBATCH --cpus-per-task={job.cpus}"]
    tasks = job.gpus_per_node if job.kind in TESTS else 1
    lines = [
        f"#SBATCH --nodes={job.nodes}",
        f"#SBATCH --ntasks-per-node={tasks}",
        f"#SBATCH --gpus-per-node={job.gpus_per_node}",
    ]
    if not job.exclusive:
        return [*lines, f"#SBATCH --cpus-per-task={job.cpus_of_gpus}"]
    lines += ["# Whole nodes. The script starts when all of them have booted.", "#SBATCH --exclusive"]
    lines.append("#SBATCH --wait-all-nodes=1")
    if job.segment:
        lines += [
            f"# Each {job.segment} nodes are of one UltraServer, so NVLink joins their GPUs.",
            f"#SBATCH --segment={job.segment}",
        ]
    return lines


def _shared_folder(job: SlurmJob) -> str:
    patterns = " | ".join(f"{path}/*" for path in job.folders)
    names = " or ".join(job.folders)
    return f"""
case $PWD/ in
    {patterns}) ;;
    *)
        echo "$PWD is not shared by the nodes: submit the job in a folder of {names}" >&2
        exit 2
        ;;
esac
"""


def _exports(variables: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={_quoted(value)}" for name, value in variables.items())


def _quoted(value: str) -> str:
    """A value for bash, in which $NAME is a variable of the script."""
    return f'"{value}"' if "$" in value else shlex.quote(value)


def _words(words: Iterable[str]) -> str:
    """Words of a command, each exactly as it is: bash expands nothing in them."""
    return " ".join(_literal(word) for word in words)


def _literal(word: str) -> str:
    if re.search(r"[$`]", word):  # in single quotes, shellcheck would ask whether that is meant
        return '"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"'
    return shlex.quote(word)


def _document(name: str, text: str) -> str:
    """Writes a file into the folder of the job. No line of the text is the one that ends it."""
    end = "END"
    while f"\n{end}\n" in f"\n{text}":
        end += "_OF_FILE"
    return f"cat > \"$JOB_FOLDER/{name}\" <<'{end}'\n{text.rstrip()}\n{end}\n"


def _job_folder() -> str:
    return """
# The folder of this job. It stays, so a restart finds what the run before it wrote.
export JOB_FOLDER=$PWD/$SLURM_JOB_NAME-$SLURM_JOB_ID
mkdir -p "$JOB_FOLDER"
# Others may write into the folder above, and what is in this one runs.
if [[ ! -O $JOB_FOLDER || -L $JOB_FOLDER ]]; then
    echo "$JOB_FOLDER belongs to somebody else" >&2
    exit 2
fi
"""


def _own_script(job: SlurmJob) -> str:
    return f"# Your script.\n{_document(job.script.name, job.script.text)}" if job.script else ""


def _network(job: SlurmJob, more: Mapping[str, str]) -> str:
    own = _CONTAINER_VARIABLES if job.image else {}
    variables = {**training_environment(job.group.hardware, efa=job.group.efa), **more, **own}
    says = (
        "# Without the EFA plugin or without EFA, NCCL would use TCP. With these settings the job fails instead.\n"
        if job.group.efa and job.nodes > 1
        else ""
    )
    return says + _exports(variables)


def _container(job: SlurmJob, names: Iterable[str]) -> list[str]:
    """Options of srun: the image, what it mounts, and variables that win over those of the image."""
    if not job.image:
        return []
    folders = (*job.folders, *((SCRATCH,) if job.group.joins_disks else ()))
    return [
        f"--container-image={shlex.quote(pyxis_image(job.image))}",
        f"--container-mounts={','.join(f'{path}:{path}' for path in folders)}",
        '--container-workdir="$PWD"',
        "--no-container-mount-home",
        "--container-writable",
        *([f"--container-env={','.join(names)}"] if names else []),
    ]


def pyxis_image(image: str) -> str:
    """An image as Pyxis names it: a file on the nodes, or REGISTRY#REPOSITORY:TAG."""
    image = image.removeprefix("docker://")
    first, _, rest = image.partition("/")
    if image.startswith(("/", "./")) or "#" in image or not rest:
        return image
    return f"{first}#{rest}" if re.search(r"[.:]|^localhost$", first) else image


def _train(job: SlurmJob) -> str:
    recorder = recorder_environment("$JOB_FOLDER/traces/rank-", job.image)
    variables = training_environment(job.group.hardware, efa=job.group.efa)
    own = _CONTAINER_VARIABLES if job.image else {}
    words = _words(job.command if job.script or job.command else [TRAINING_SCRIPT])
    command = f'"$JOB_FOLDER/{job.script.name}" {words}'.rstrip() if job.script else words
    names = [*variables, *recorder, *own, "JOB_FOLDER", "MASTER_ADDR", "MASTER_PORT"]
    torchrun = "torchrun" if job.image else f"{job.venv}/bin/torchrun"
    port = str(RENDEZVOUS_PORT) if job.exclusive else f"$(({RENDEZVOUS_PORT} + SLURM_JOB_ID % 1000))"
    node = f"""# What each node runs: one torchrun for all its GPUs. Its number is that in Slurm's list of nodes.
echo "$SLURMD_NODENAME" > "$JOB_FOLDER/nodes/$SLURM_NODEID"
exec {shlex.quote(torchrun)} --nnodes {job.nodes} --nproc-per-node {job.gpus_per_node} --node-rank "$SLURM_NODEID" \\
    --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" {command}
"""
    options = [
        f"--nodes={job.nodes}",
        f"--ntasks={job.nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        "--kill-on-bad-exit=1",
        *_container(job, names),
    ]
    main = _joined(
        _job_folder(),
        _own_script(job),
        _network(job, {}),
        "# When a collective times out, each rank writes what it waited for, and ends.\n" + _exports(recorder),
        f"""
# The first node of Slurm's list has rank 0.
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=$(scontrol getaddrs "${{hosts[0]}}" | sed 's/^.*: //; s/:[0-9]*$//')
export MASTER_ADDR MASTER_PORT={port}
""",
        _document("node.sh", node),
        f"""
# watch_job.py runs the job. It ends a job whose ranks write no heartbeat for --stalled seconds, names the ranks that
# stopped, and starts the job again without their nodes. Slurm sends it the signal before the time of the job ends.
write_watch_job
exec python3 "$JOB_FOLDER/watch_job.py" --ranks {job.gpus} --ranks-per-node {job.gpus_per_node} \\
    --stalled {STALLED_SECONDS} --restarts {MAXIMUM_RESTARTS} --spares {job.spares} -- \\
    srun {_wrapped(options)} \\
    sh "$JOB_FOLDER/node.sh"
""",
    )
    return _before(main, WATCH_JOB)


def _before(main: str, name: str) -> str:
    """A script that starts with `main`, which calls a function that writes a program of ours."""
    text = _document(name, program(name))
    return f"main() {{\n{_indented(main)}}}\n\nwrite_{name.removesuffix('.py')}() {{\n{text}}}\n\nmain\n"


def _indented(text: str) -> str:
    """The body of a function. Lines of files that the script writes stay as they are."""
    lines, end = [], None
    for line in text.splitlines():
        lines.append(line if end or not line else f"    {line}")
        if end == line:
            end = None
        elif found := re.search(r"<<'(\w+)'$", line):
            end = found[1]
    return "\n".join(lines) + "\n"


def _wrapped(options: Iterable[str]) -> str:
    """Options in lines of at most 110 characters."""
    lines = [""]
    for option in options:
        if lines[-1] and len(lines[-1]) + len(option) > 110:
            lines.append("")
        lines[-1] += f" {option}" if lines[-1] else option
    return " \\\n        ".join(lines)


def _nccl_test(job: SlurmJob) -> str:
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    sizes = f"-b 8 -e {LARGEST_MESSAGE} -f 2 -g 1 -c 1 -n 100"
    return _joined(
        _programs(job),
        _network(job, debug),
        f"""
# One process for each GPU.
{_all_reduce(job, debug, sizes, job.nodes)}
""",
    )


def _nccl_pairs(job: SlurmJob) -> str:
    hardware = job.group.hardware
    more = pair_environment(hardware)
    container = [PAIRS_CONTAINER, *_container(job, [])]
    image = f"""
# Nodes import the image here, so that it is not in the time of the pairs.
srun {_wrapped(['--ntasks="$SLURM_JOB_NUM_NODES"', "--ntasks-per-node=1", *container])} \\
    true
"""
    main = _joined(
        image if job.image else "",
        _programs(job),
        _network(job, more),
        _job_folder(),
        f"""
# pair_nodes.py runs the command for each pair, one process for each GPU. A pair under the floor (GB/s) is not good.
write_pair_nodes
exec python3 "$JOB_FOLDER/{PAIR_NODES}" --nodes "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd,)" \\
    --type {hardware.name} --floor {pair_floor(hardware) or 0:g} --seconds {PAIR_SECONDS} -- \\
    {_all_reduce(job, more, " ".join(PAIR_ARGUMENTS), 2, pair=True)}
""",
    )
    return _before(main, PAIR_NODES)


def _programs(job: SlurmJob) -> str:
    """Finds the programs of the image of the nodes, for jobs without a container."""
    return (
        ""
        if job.image
        else """
mpirun=${MPIRUN:-/opt/amazon/openmpi/bin/mpirun}
shopt -s nullglob
tests=("${CUDA_ROOT:-/usr/local}"/cuda-*/efa/test-cuda-*/all_reduce_perf)
if ((${#tests[@]} == 0)); then
    echo "no all_reduce_perf below ${CUDA_ROOT:-/usr/local}: this image has no NCCL tests" >&2
    exit 1
fi
test=${tests[-1]}
cuda=${test%/efa/*}
plugin=/opt/amazon/ofi-nccl/lib
machine=$(uname -m)
export LD_LIBRARY_PATH="$cuda/lib:$cuda/lib64:$plugin:$plugin/$machine-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"""
    )


def _all_reduce(job: SlurmJob, more: Mapping[str, str], arguments: str, nodes: int, *, pair: bool = False) -> str:
    """The command that runs all_reduce_perf on each GPU of `nodes` nodes; a `pair` is {first} and {second}."""
    variables = [*{**training_environment(job.group.hardware, efa=job.group.efa), **more}]
    each = job.gpus_per_node
    if job.image:
        options = [
            f"--nodes={nodes}",
            *(['"--nodelist={first},{second}"', PAIRS_CONTAINER] if pair else []),
            f"--ntasks={nodes * each}",
            f"--ntasks-per-node={each}",
            "--mpi=pmix",
            "--cpu-bind=none",
            "--kill-on-bad-exit=1",
            *_container(job, [*variables, *_CONTAINER_VARIABLES]),
        ]
        return f"srun {_wrapped(options)} \\\n    /opt/nccl-tests/build/all_reduce_perf {arguments}"
    exported = " ".join(f"-x {name}" for name in ("LD_LIBRARY_PATH", *variables))
    hosts = f' --host "{{first}}:{each},{{second}}:{each}"' if pair else ""
    return f""""$mpirun" --bind-to none{hosts} -np {nodes * each} -N {each} \\
    {exported} \\
    "$test" {arguments}"""


def _prepare(job: SlurmJob) -> str:
    if job.script:
        program = "python3" if job.script.name.endswith(".py") else "bash"
        command = f'{program} "$JOB_FOLDER/{job.script.name}" {_words(job.command)}'.rstrip()
    else:
        command = _words(job.command or ["python3", PREPARE_SCRIPT])
    options = ["--ntasks=1", f"--cpus-per-task={job.cpus}", *_container(job, ["JOB_FOLDER"])]
    folder = ("" if job.venv.startswith("/") else "$PWD/") + re.sub(r'([\\"$`])', r"\\\1", job.venv)
    own = f'# The virtual environment.\nexport PATH="{folder}/bin:$PATH"\n' if job.venv else ""
    return _joined(_job_folder(), _own_script(job), own, f"srun {_wrapped(options)} \\\n    {command}")
