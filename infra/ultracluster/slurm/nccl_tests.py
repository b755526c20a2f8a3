"""Bodies of sbatch scripts that measure all_reduce: over all nodes, or between pairs of nodes."""

from collections.abc import Mapping

from ultracluster.catalog.health import pair_floor
from ultracluster.catalog.training import training_environment
from ultracluster.jobs.request import PAIR_ARGUMENTS, PAIR_NODES, PAIR_SECONDS, pair_environment
from ultracluster.slurm.bash import calling_program, joined, wrapped
from ultracluster.slurm.jobs import SlurmJob
from ultracluster.slurm.parts import CONTAINER_VARIABLES, container_options, job_folder, network_exports

LARGEST_MESSAGE = "16G"
"""Largest message of the network test, at which AWS publishes bus bandwidths."""

PAIRS_CONTAINER = '--container-name="$SLURM_JOB_ID.pairs"'
"""Steps of a job with the same name share the container of a node. The epilog removes it by the number of the job."""


def nccl_test(job: SlurmJob) -> str:
    """Measures all_reduce over all GPUs of the job."""
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    sizes = f"-b 8 -e {LARGEST_MESSAGE} -f 2 -g 1 -c 1 -n 100"
    return joined(
        _find_programs(job),
        network_exports(job, debug),
        f"""
# One process for each GPU.
{_all_reduce(job, debug, sizes, job.nodes)}
""",
    )


def nccl_pairs(job: SlurmJob) -> str:
    """Measures all_reduce between pairs of nodes with pair_nodes.py."""
    hardware = job.group.hardware
    more = pair_environment(hardware)
    container = [PAIRS_CONTAINER, *container_options(job, [])]
    image = f"""
# Import the image on all nodes first, so that it does not count in the time of the pairs.
srun {wrapped(['--ntasks="$SLURM_JOB_NUM_NODES"', "--ntasks-per-node=1", *container])} \\
    true
"""
    main = joined(
        image if job.image else "",
        _find_programs(job),
        network_exports(job, more),
        job_folder(),
        f"""
# pair_nodes.py runs the command for each pair, one process for each GPU. A pair under the floor (GB/s) is not good.
write_pair_nodes
exec python3 "$JOB_FOLDER/{PAIR_NODES}" --nodes "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd,)" \\
    --type {hardware.name} --floor {pair_floor(hardware) or 0:g} --seconds {PAIR_SECONDS} -- \\
    {_all_reduce(job, more, " ".join(PAIR_ARGUMENTS), 2, pair=True)}
""",
    )
    return calling_program(main, PAIR_NODES)


def _find_programs(job: SlurmJob) -> str:
    """Finds mpirun, all_reduce_perf and CUDA on the node, for jobs without a container."""
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
    """The command that runs all_reduce_perf on each GPU of `nodes` nodes; for a `pair`, on {first} and {second}."""
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
            *container_options(job, [*variables, *CONTAINER_VARIABLES]),
        ]
        return f"srun {wrapped(options)} \\\n    /opt/nccl-tests/build/all_reduce_perf {arguments}"
    exported = " ".join(f"-x {name}" for name in ("LD_LIBRARY_PATH", *variables))
    hosts = f' --host "{{first}}:{each},{{second}}:{each}"' if pair else ""
    return f""""$mpirun" --bind-to none{hosts} -np {nodes * each} -N {each} \\
    {exported} \\
    "$test" {arguments}"""
