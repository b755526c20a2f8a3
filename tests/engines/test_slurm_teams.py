"""Real Slurm and slurmdbd take the settings, the accounts and the limits of teams, and act on them."""

import pytest

from tests.engines.slurm import start
from tests.engines.test_slurm_jobs import FOLDER, TORCHRUN, printed
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.nodes.slurm_accounts import arguments
from ultracluster.nodes.slurm_policy import cluster_settings, queue_settings
from ultracluster.nodes.steps import script

GROUP = NodeGroup(name="train", instance_type="p5.48xlarge", count=2)
TEAMS = [
    {"name": "pretrain", "fairshare": 60, "qos": "high", "members": ["ana", "ben"]},
    {"name": "research", "fairshare": 40, "max_gpus": 4, "members": ["carl", "ben"]},
    {"name": "evaluate", "qos": "low", "members": ["dora"], "node_groups": ["other"]},
]
FEWER = [
    {"name": "pretrain", "fairshare": 10, "qos": "normal", "members": ["ana"]},
    {"name": "evaluate", "qos": "low", "max_gpus": 8, "members": ["dora", "ben"]},
]

FUNCTIONS = r"""
set +e
chmod 777 /tmp
mkdir -p /opt/aws/pcs/scheduler/slurm-26.05/bin /opt/aws/pcs/scheduler/slurm-27.05/bin
ln -s /usr/bin/sacctmgr /opt/aws/pcs/scheduler/slurm-26.05/bin/
printf '#!/bin/sh\nexit 1\n' > /opt/aws/pcs/scheduler/slurm-27.05/bin/sacctmgr
chmod 755 /opt/aws/pcs/scheduler/slurm-27.05/bin/sacctmgr
for user in ana ben carl dora; do useradd --no-create-home "$user"; done
as() { setpriv --reuid="$1" --regid=nogroup --clear-groups "${@:2}"; }
submit() { as "$1" sbatch --parsable --output=/dev/null "${@:2}"; }
until_seen() { for _ in $(seq 1000); do eval "$1" && return; sleep 0.5; done; echo "never: $1" >&2; return 1; }
state() { squeue -h -j "$1" -o '%T %r'; }
records() {
  sacctmgr -nP show associations \
    format=account,user,share,grptres,grpjobs,grpsubmitjobs,maxjobs,maxsubmitjobs,qos,defaultqos
  sacctmgr -nP show qos format=name,priority,preempt,gracetime
  sacctmgr -nP show account format=account,organization
  sacctmgr -nP show user format=user,defaultaccount
}
"""


def environment(teams=TEAMS, settings=None, queue_names=("train", "other"), **queue):
    queues = [{"name": name, "node_groups": [name]} for name in queue_names]
    queues[0]["slurm_settings"] = queue
    given = {"slurm_version": "26.05", "teams": teams, "queues": queues, "slurm_settings": settings or {}}
    return Pcs.model_validate(given)


def partitions(settings):
    lines = []
    for queue in settings.queues:
        values = queue_settings(queue, [GROUP], settings.teams, settings.slurm_version)
        words = " ".join(f"{name}={value}" for name, value in values.items())
        default = "YES" if queue.name == "train" else "NO"
        lines.append(f"PartitionName={queue.name} Nodes=ALL Default={default} {words}\n")
    return "".join(lines)


def program(teams=TEAMS):
    first, *lines = script("set-up-accounting").text.splitlines()
    return "\n".join([first, *arguments(environment(teams).teams), *lines]) + "\n"


@pytest.fixture
def run(debian):
    """Runs a script in a cluster with the generated settings, whose accounts are set up unless `accounts` is false."""

    def running(text, settings=None, *, accounts=True, **queue):
        pcs = environment(settings=settings, **queue)
        queues = partitions(pcs)
        beginning = start(debian, cluster_settings(pcs, [GROUP]), accounting=True, queues=queues)
        debian.write("/accounts", program(), mode=0o755)
        debian.write("/fewer", program(FEWER), mode=0o755)
        first = "/accounts > /tmp/accounts.log 2>&1 || cat /tmp/accounts.log >&2\n" if accounts else ""
        debian.write("/run.sh", beginning + FUNCTIONS + first + text)
        ran = debian.run("bash", "/run.sh")
        return ran.stdout.splitlines(), ran.stderr

    return running


def test_the_controller_takes_every_setting(run):
    said, errors = run(
        """
grep -iE 'error|fatal|warn' /tmp/slurmctld.log | grep -vE 'MailProg|No association for account'
scontrol show config | grep -oE '^(PriorityType|PreemptType|PreemptMode|PriorityWeightQOS) .*' | tr -s ' '
scontrol show partition train | grep -oE '(MaxTime|DefaultTime|DenyAccounts|Exclusive|TRESBillingWeights)=[^ ]*'
"""
    )
    assert said == [
        "PreemptMode = REQUEUE",
        "PreemptType = preempt/qos",
        "PriorityType = priority/multifactor",
        "PriorityWeightQOS = 1000000",
        "DenyAccounts=evaluate",
        "DefaultTime=1-00:00:00",
        "Exclusive=NODE",
        "MaxTime=14-00:00:00",
        "TRESBillingWeights=GRES/gpu=1.0",
    ], errors


def test_the_script_may_run_again_and_other_teams_delete_nothing(run):
    said, errors = run(
        """
records > /tmp/first
/accounts > /dev/null || echo failed
records > /tmp/second
cmp /tmp/first /tmp/second && echo same
sacctmgr -i modify account research set grpnodes=3 > /dev/null
cat /tmp/first
echo fewer
/fewer > /dev/null || echo failed
records > /tmp/fewer; /fewer > /dev/null; records | cmp - /tmp/fewer && echo same
grep -E '^(research|pretrain|evaluate)\\|' /tmp/fewer
grep -E '^ben\\|' /tmp/fewer
submit ben --account=research --wrap true 2>&1 | grep -o 'Job violates.*'
echo back
/accounts > /dev/null
records > /tmp/back
diff /tmp/first /tmp/back
sacctmgr -nP show associations where account=research user= format=account,user,grptres
"""
    )
    place = said.index("fewer")
    first, fewer, back = said[:place], said[place + 1 : said.index("back")], said[said.index("back") + 1 :]
    assert first[0] == "same", errors
    assert "pretrain||60||||||high,low,normal|high" in first
    assert "research||40|gres/gpu=4|||||low,normal|normal" in first
    assert "evaluate||1||||||low|low" in first
    assert {"high|100|low,normal|00:00:00", "normal|50|low|00:02:00", "low|0||00:02:00"} <= set(first)
    assert {"ana|pretrain", "ben|pretrain", "carl|research", "dora|evaluate"} <= set(first)
    assert fewer[0] == "same"
    assert "pretrain||10||||||low,normal|normal" in fewer
    assert "research||40|gres/gpu=4,node=3|0|0|||low,normal|normal" in fewer
    assert "pretrain|ben|1||||0|0|low,normal|normal" in fewer
    assert "ben|evaluate" in fewer, "the default account is one of the user's teams"
    assert "evaluate||1|gres/gpu=8|||||low|low" in fewer
    assert any("Job violates accounting" in line for line in fewer), errors
    # a team that returns has its jobs again, and what people set by hand stays
    assert "> research||40|gres/gpu=4,node=3|||||low,normal|normal" in back
    assert [line for line in back if line.startswith(">")] == [
        "> evaluate|ben|1||||0|0|low|low",
        "> research||40|gres/gpu=4,node=3|||||low,normal|normal",
    ]


def test_a_queue_whose_qos_does_not_exist_stops_the_controller_and_not_once_the_script_has_run(run):
    said, errors = run(
        """
sed -i 's/^PartitionName=train .*/& AllowQos=high/' /etc/slurm/slurm.conf
kill "$slurmctld"; wait "$slurmctld"
slurmctld -D > /tmp/next.log 2>&1; echo "exit $?"
grep -o 'fatal: Partition train has an invalid AllowQOS (high)' /tmp/next.log
sed -i 's/ AllowQos=high//' /etc/slurm/slurm.conf
slurmctld -D > /tmp/next.log 2>&1 & next=$!
/accounts > /tmp/accounts.log 2>&1 && echo 'set up'
sed -i 's/^PartitionName=train .*/& AllowQos=high/' /etc/slurm/slurm.conf
kill "$next"; wait "$next"
slurmctld -D > /tmp/last.log 2>&1 &
until_seen "scontrol show partition train 2> /dev/null | grep -o 'AllowQos=high'"
""",
        accounts=False,
    )
    reason = "fatal: Partition train has an invalid AllowQOS (high)"
    assert said == ["exit 1", reason, "set up", "AllowQos=high"], errors


def test_a_job_beyond_the_limit_of_its_team_waits_and_jobs_get_whole_nodes(run):
    said, errors = run(
        """
first=$(submit carl -N1 --gres=gpu:1 --wrap 'sleep 600')
second=$(submit carl -N1 --gres=gpu:1 --wrap 'sleep 600')
third=$(submit ana -N1 --gres=gpu:1 --wrap 'sleep 600')
until_seen '[ "$(state $second)" = "PENDING AssocGrpGRES" ]'
until_seen '[ "$(state $third)" = "RUNNING None" ]'
for job in $first $second $third; do state $job; done
scontrol show job $first | grep -oE 'AllocTRES=.*'
submit dora --partition=train --wrap true 2>&1 | grep -o 'Invalid account.*'
submit carl --qos=high --wrap true 2>&1 | grep -o 'Invalid qos.*'
submit carl --time=15-0 --wrap true 2>&1 | grep -o 'Requested time limit.*'
scontrol show job $first | grep -oE 'TimeLimit=[^ ]*'
"""
    )
    assert said[:3] == ["RUNNING None", "PENDING AssocGrpGRES", "RUNNING None"], errors
    assert said[3].endswith("gres/gpu=4")
    assert said[4].startswith("Invalid account")
    assert said[5].startswith("Invalid qos")
    assert said[6].startswith("Requested time limit is invalid")
    assert said[7] == "TimeLimit=1-00:00:00"


def test_a_higher_qos_evicts_the_youngest_job_which_is_requeued_without_hold(run):
    said, errors = run(
        """
old=$(submit ana --qos=low -N1 --gres=gpu:4 --wrap 'sleep 600')
until_seen '[ "$(state $old)" = "RUNNING None" ]'; sleep 2
young=$(submit ana --qos=low -N1 --gres=gpu:4 --wrap 'srun sleep 600')
until_seen '[ "$(state $young)" = "RUNNING None" ]'
high=$(submit ana -N1 --gres=gpu:4 --wrap 'until [ -e /end ]; do sleep 0.2; done')
until_seen '[ "$(state $high)" = "RUNNING None" ]'
echo "old $(state $old)"
echo "young $(squeue -h -j $young -o %T)"
scontrol show job $young | grep -oE '(Requeue|Restarts|Priority)=[^ ]*' | tr '\\n' ' '; echo
touch /end
until_seen '! squeue -h -j $high 2>/dev/null | grep -q .'
scontrol update jobid=$young eligibletime=now
until_seen '[ "$(state $young)" = "RUNNING None" ]' && echo 'runs again'
""",
        {"PreemptExemptTime": "00:00:00"},
    )
    assert said[0] == "old RUNNING None", errors
    assert said[1] == "young PENDING"
    facts = dict(word.split("=") for word in said[2].split())
    assert (facts["Requeue"], facts["Restarts"]) == ("1", "1")
    assert facts["Priority"] != "0", "a held job has priority 0"
    assert said[3] == "runs again"


TRAINING = f"""
install -d -m 1777 /fsx /fsx/queues {FOLDER}
cd {FOLDER}
low=$(as ana sbatch --parsable --partition=train --qos=low /train.sbatch)
until_seen 'grep -q NODE *.out 2> /dev/null'; sleep 3
high=$(submit ana -N1 --gres=gpu:4 --wrap 'sleep 5')
until_seen '[ "$(state $high)" = "RUNNING None" ]' 2> /dev/null || until_seen '[ "$(state $high)" = "RUNNING None" ]'
until_seen '[[ "$(state $low)" = PENDING* ]]' 2> /dev/null || until_seen '[[ "$(state $low)" = PENDING* ]]'
scontrol show job $low | grep -oE 'JobState=[A-Z]*|Restarts=[0-9]*'
"""


def test_a_preempted_job_saves_a_checkpoint_and_goes_on(run, debian):
    debian.write("/train.sbatch", printed(8))
    debian.write(f"{FOLDER}/venv/bin/torchrun", TORCHRUN, mode=0o755)
    debian.write(f"{FOLDER}/long", "")
    said, errors = run(
        f"""{TRAINING}
until_seen '! squeue -h -j $high 2> /dev/null | grep -q .'
scontrol update jobid=$low eligibletime=now
until_seen '! squeue -h -j $low 2> /dev/null | grep -q .'
scontrol show job $low | grep -oE 'JobState=[A-Z]*|Restarts=[0-9]*'
cat *.out; ls */failures 2> /dev/null
""",
        {"PreemptExemptTime": "00:00:00"},
    )
    assert said[:4] == ["JobState=PENDING", "Restarts=1", "JobState=COMPLETED", "Restarts=1"], errors
    assert said.count("watch_job: the job has to end soon; save a checkpoint and end") == 1, said
    assert said.count("SAVED") == 2
    assert said.count("DONE") == 4


def test_a_preempted_job_that_ignores_the_signal_is_requeued_when_its_grace_time_ends(run, debian):
    debian.write("/train.sbatch", printed(8))
    wait = "#!/bin/bash\necho NODE\ntrap '' TERM\nwhile sleep 1; do :; done\n"
    debian.write(f"{FOLDER}/venv/bin/torchrun", wait, mode=0o755)
    said, errors = run(
        f"""sacctmgr -i modify qos low set gracetime=5 > /dev/null
/accounts > /dev/null
sacctmgr -nP show qos low format=gracetime
{TRAINING}
cat *.out | grep watch_job; ls */failures 2> /dev/null
scancel $low
""",
        {"PreemptExemptTime": "00:00:00"},
    )
    assert said == [
        "00:00:05",
        "JobState=PENDING",
        "Restarts=1",
        "watch_job: the job has to end soon; save a checkpoint and end",
    ], errors


def test_a_suspended_job_would_keep_its_gpus_so_nobody_is_evicted(run):
    """Why `validate` refuses SUSPEND and GANG."""
    said, errors = run(
        """
low=$(submit ana --qos=low -N2 --gres=gpu:4 --wrap 'sleep 100')
until_seen '[ "$(state $low)" = "RUNNING None" ]'; sleep 2
high=$(submit ana -N1 --gres=gpu:4 --wrap 'sleep 5')
until_seen '[ "$(state $high)" = "PENDING Resources" ]'; sleep 8
state $low; state $high
scancel $low
until_seen '[ "$(state $high)" = "RUNNING None" ]' && echo 'runs when the other has ended'
""",
        {"PreemptExemptTime": "00:00:00", "PreemptMode": "SUSPEND,GANG"},
    )
    assert said == ["RUNNING None", "PENDING Resources", "runs when the other has ended"], errors


def test_the_team_that_used_less_of_its_share_goes_first(run):
    said, errors = run(
        """
used=$(submit ana --qos=normal -N2 --gres=gpu:4 --wrap 'until [ -e /end ]; do sleep 0.2; done')
until_seen '[ "$(state $used)" = "RUNNING None" ]'
sleep 5; touch /end
used=$(submit ana --qos=normal -N2 --gres=gpu:4 --wrap 'sleep 600')
until_seen '[ "$(state $used)" = "RUNNING None" ]'
first=$(submit ana --qos=normal -N2 --gres=gpu:4 --wrap 'sleep 600')
second=$(submit carl -N1 --gres=gpu:1 --wrap 'sleep 600')
# shares are calculated every five minutes, and when the controller starts
kill "$slurmctld"; wait "$slurmctld"
slurmctld -D > /tmp/next.log 2>&1 &
until_seen 'sprio -hn -j $second -o %F 2> /dev/null | grep -q "[1-9]"'
sprio -hn -o '%u %F' | sort
scancel "$used"
until_seen '[ "$(state $second)" = "RUNNING None" ]'
squeue -h -o '%u %T' | sort
"""
    )
    shares = dict(line.split() for line in said[:2])
    assert float(shares["carl"]) > float(shares["ana"]), errors
    assert said[2:] == ["ana PENDING", "carl RUNNING"], errors
