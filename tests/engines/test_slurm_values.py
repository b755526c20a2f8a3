"""Real Slurm refuses what our rules refuse of the values of slurm.conf, and takes what they take."""

from tests.engines.slurm import CONFIGURATION
from ultracluster.catalog import pcs
from ultracluster.config.slurm_conflicts import cluster_conflicts, queue_conflicts
from ultracluster.config.slurm_settings import setting_problems, without_spaces

CLUSTER = [
    *({name: "banana"} for name in ("EnforcePartLimits", "PreemptMode", "PrologFlags", "SelectTypeParameters")),
    *({name: "a week"} for name in ("PriorityMaxAge", "SchedulerParameters", "LaunchParameters")),
    *(
        {name: "week"}
        for name in ("PriorityDecayHalfLife", "PriorityMaxAge", "PriorityCalcPeriod", "PreemptExemptTime")
    ),
    *({name: "7-0"} for name in ("PriorityDecayHalfLife", "PriorityMaxAge", "PriorityCalcPeriod", "PreemptExemptTime")),
    {"PriorityUsageResetPeriod": "NEVER"},
    {"OverTimeLimit": "long"},
    {"DefMemPerCPU": "much"},
    {"TrackWCKey": "maybe"},
    {"SchedulerParameters": '"bf_continue defer"'},
    {"SchedulerParameters": "bf_continue,defer"},
    *({"EnforcePartLimits": word} for word in pcs.VALUES["EnforcePartLimits"]),
    *({"PriorityUsageResetPeriod": word} for word in pcs.VALUES["PriorityUsageResetPeriod"]),
    *({"SelectTypeParameters": word} for word in pcs.VALUES["SelectTypeParameters"]),
    *({"PrologFlags": word} for word in pcs.VALUES["PrologFlags"] if word != "X11"),
    {"PrologFlags": "Contain,NoHold"},
    *({"HealthCheckNodeState": word} for word in pcs.VALUES["HealthCheckNodeState"]),
    {"HealthCheckNodeState": "ANY,CYCLE"},
    {"HealthCheckNodeState": "START_ONLY,CYCLE"},
    {"HealthCheckNodeState": "IDLE,REBOOT_ONLY"},
    *(
        {"PreemptMode": mode}
        for mode in ("OFF", "GANG", "REQUEUE", "CANCEL", "SUSPEND", "SUSPEND,GANG", "REQUEUE,GANG")
    ),
    *(
        {"PreemptType": kind, "PreemptMode": mode}
        for kind in ("preempt/none", "preempt/qos", "preempt/partition_prio")
        for mode in (
            "OFF",
            "GANG",
            "REQUEUE",
            "CANCEL",
            "SUSPEND",
            "SUSPEND,GANG",
            "REQUEUE,WITHIN",
            "GANG,WITHIN,CANCEL",
            "CANCEL,REQUEUE",
        )
    ),
    {"PreemptType": "preempt/qos"},
    {"PreemptType": "preempt/none"},
]
QUEUE = [
    *({"Exclusive": word} for word in [*pcs.VALUES["Exclusive"], "GPU"]),
    *({"GraceTime": value} for value in ("120", "00:02:00")),
    # slurmctld 26.05 ignores GANG of a partition, with an error in its log
    *({"PreemptMode": word} for word in pcs.VALUES["PreemptMode"] if word != "GANG"),
    {"ExclusiveUser": "NODE"},
    {"PowerDownOnIdle": "maybe"},
    {"DefaultTime": "1-0", "MaxTime": "2-0"},
    {"AllowAccounts": "a, b"},
    {"AllowAccounts": "a b"},
]


def configuration(settings, partition):
    """slurm.conf with settings of the cluster and of a queue, in place of those of the other tests."""
    lines = [line for line in CONFIGURATION.splitlines() if line.split("=")[0] not in settings]
    lines += [f"{name}={value}" for name, value in settings.items()]
    own = "".join(f" {name}={value}" for name, value in partition.items())
    return "\n".join([*lines, f"PartitionName=train Nodes=ALL Default=YES{own}"]) + "\n"


def refused(settings, partition):
    problems = [*setting_problems(settings, "cluster"), *cluster_conflicts(settings, preempts=False)]
    return bool([*problems, *setting_problems(partition, "queue"), *queue_conflicts(partition)])


def test_slurm_starts_with_the_values_that_we_take_and_with_no_others(debian):
    cases = [*((each, {}) for each in CLUSTER), *(({}, each) for each in QUEUE)]
    ours = [refused(*case) for case in cases]
    for i, (settings, partition) in enumerate(cases):
        written = {name: without_spaces(value) for name, value in partition.items()}
        debian.write(f"/etc/slurm/{i}.conf", configuration(settings, written))
    debian.write(
        "/run.sh",
        f"""
for i in $(seq 0 {len(cases) - 1}); do
    # every command of Slurm reads the whole file first
    export SLURM_CONF=/etc/slurm/$i.conf
    if scontrol show hostnames node > /dev/null 2>&1; then echo taken; else echo refused; fi
done
""",
    )
    said = debian.run("bash", "/run.sh").stdout.split()
    assert len(said) == len(cases)
    assert [case for case, mine, slurm in zip(cases, ours, said, strict=True) if mine != (slurm == "refused")] == []
    assert {*said} == {"taken", "refused"}
