"""Body of an sbatch script that trains: torchrun on each node, under watch_job.py."""

import shlex
from collections.abc import Mapping

from ultracluster.catalog.training import recorder_environment, training_environment
from ultracluster.jobs.request import MAXIMUM_RESTARTS, RENDEZVOUS_PORT, STALLED_SECONDS, WATCH_JOB
from ultracluster.slurm.bash import calling_program, exports, here_document, joined, shell_words, wrapped
from ultracluster.slurm.header import TRAINING_SCRIPT
from ultracluster.slurm.jobs import SlurmJob
from ultracluster.slurm.parts import CONTAINER_VARIABLES, container_options, job_folder, network_exports, user_script


def train(job: SlurmJob) -> str:
    """Trains with one torchrun on each node."""
    recorder = recorder_environment("$JOB_FOLDER/traces/rank-", job.image)
    main = joined(
        job_folder(),
        user_script(job),
        network_exports(job, {}),
        "# When a collective times out, each rank writes a trace of its last collectives and exits.\n"
        + exports(recorder),
        _rendezvous(job),
        here_document("node.sh", _node_script(job)),
        f"""
# watch_job.py runs the job. If ranks write no heartbeat for --stalled seconds, it ends the job, names the ranks that
# stopped, and requeues the job without their nodes. It also requeues the job at Slurm's signal.
write_watch_job
exec python3 "$JOB_FOLDER/watch_job.py" --ranks {job.gpus} --ranks-per-node {job.gpus_per_node} \\
    --stalled {STALLED_SECONDS} --restarts {MAXIMUM_RESTARTS} --spares {job.spares} -- \\
    srun {wrapped(_srun_options(job, recorder))} \\
    sh "$JOB_FOLDER/node.sh"
""",
    )
    return calling_program(main, WATCH_JOB)


def _rendezvous(job: SlurmJob) -> str:
    """Address and port of rank 0. Jobs that share a node need ports of their own."""
    port = str(RENDEZVOUS_PORT) if job.exclusive else f"$(({RENDEZVOUS_PORT} + SLURM_JOB_ID % 1000))"
    return f"""
# The first node of Slurm's list has rank 0.
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=$(scontrol getaddrs "${{hosts[0]}}" | sed 's/^.*: //; s/:[0-9]*$//')
export MASTER_ADDR MASTER_PORT={port}
"""


def _node_script(job: SlurmJob) -> str:
    words = shell_words(job.command if job.script or job.command else [TRAINING_SCRIPT])
    command = f'"$JOB_FOLDER/{job.script.name}" {words}'.rstrip() if job.script else words
    torchrun = "torchrun" if job.image else f"{job.venv}/bin/torchrun"
    return f"""# Runs on each node: one torchrun for all GPUs. SLURM_NODEID is the index of the node in Slurm's list.
echo "$SLURMD_NODENAME" > "$JOB_FOLDER/nodes/$SLURM_NODEID"
exec {shlex.quote(torchrun)} --nnodes {job.nodes} --nproc-per-node {job.gpus_per_node} --node-rank "$SLURM_NODEID" \\
    --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" {command}
"""


def _srun_options(job: SlurmJob, recorder: Mapping[str, str]) -> list[str]:
    """One task on each node, with the variables of the job in its container."""
    variables = training_environment(job.group.hardware, efa=job.group.efa)
    container = CONTAINER_VARIABLES if job.image else {}
    return [
        f"--nodes={job.nodes}",
        f"--ntasks={job.nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        "--kill-on-bad-exit=1",
        *container_options(job, [*variables, *recorder, *container, "JOB_FOLDER", "MASTER_ADDR", "MASTER_PORT"]),
    ]
