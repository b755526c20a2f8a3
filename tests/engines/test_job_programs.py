"""A real Slurm runs the prolog and the epilog that tell which job uses which GPU, and record jobs that have ended."""

import json

import pytest

from tests.engines.slurm import HELD, start
from ultracluster.nodes.pcs import job_settings
from ultracluster.nodes.steps import Step

OWN = '#!/bin/bash\necho "$SLURM_SCRIPT_CONTEXT ${0##*/} $SLURM_JOB_ID" >> /tmp/own.log\n'
MAPPING = "/run/ultracluster/gpu-jobs"
METRICS = "/var/lib/node_exporter/jobs"


PART = '#!/bin/bash\necho "${0##*/} $SLURM_JOB_ID" >> /tmp/parts.log\n'
FAILS_ON_1 = '#!/bin/bash\n[ "$SLURMD_NODENAME" != gpu-1 ] || { echo "GPU 0 is lost"; exit 3; }\n'


def run(debian, script, *, own=(), prepare="", records="output"):
    debian.boot([Step("write-job-programs", (records, *own))])
    beginning = start(debian, {**job_settings({}, [], "26.05"), "PrologFlags": "Alloc"}, prepare=prepare)
    debian.write("/run.sh", beginning + script)
    ran = debian.run("bash", "/run.sh")
    return ran.stdout, ran.stderr


def records_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_each_gpu_of_a_job_names_the_job_and_its_queue_while_it_runs(debian):
    said, errors = run(
        debian,
        f"""
sbatch -N1 -w gpu-1 --gres=gpu:3 --output=/tmp/%x-%j.log --job-name=first --wrap '{HELD}' > /dev/null
sbatch -N1 -w gpu-1 --gres=gpu:1 --output=/tmp/%x-%j.log --job-name=second --wrap '{HELD}' > /dev/null
for _ in $(seq 1000); do [ -e {MAPPING}/3 ] && break; sleep 0.2; done
cd {MAPPING}; for gpu in [0-9]*; do echo "$gpu $(cat "$gpu")"; done
touch /end
for _ in $(seq 1000); do [ "$(ls {MAPPING}; squeue -h; sinfo -h -o %T)" = idle ] && break; sleep 0.5; done
echo "left $(ls {MAPPING}) state $(sinfo -h -o %T)"
""",
    )
    assert said.splitlines() == ["0 1;train", "1 1;train", "2 1;train", "3 2;train", "left  state idle"], errors


def test_metrics_that_a_job_wrote_end_with_it(debian):
    said, errors = run(
        debian,
        f"""
install -d -m 1777 {METRICS}; chmod 777 /tmp
touch {METRICS}/others.prom
setpriv --reuid=nobody --regid=nogroup --clear-groups \\
  sbatch -N1 --output=/tmp/%j.log --wait --wrap \\
  'echo "step 5" > {METRICS}/training-1-0.prom; mkfifo {METRICS}/pipe; ls {METRICS}' > /dev/null
cat /tmp/1.log
for _ in $(seq 1000); do [ "$(ls {METRICS})" = others.prom ] && break; sleep 0.2; done
echo "left $(ls {METRICS})"
""",
    )
    assert said.splitlines() == ["others.prom", "pipe", "training-1-0.prom", "left others.prom"], errors


def test_the_end_of_a_job_is_recorded_once_with_its_output(debian):
    said, errors = run(
        debian,
        """
mkdir -p /fsx/logs; chmod 777 /fsx/logs /tmp
cat > /job.sh <<'JOB'
#!/bin/bash
echo 'step 1 "loss" 2.5'
srun -N2 --ntasks=2 bash -c 'echo "rank $SLURM_PROCID of \\\\ fails"' | sort
exit 7
JOB
setpriv --reuid=nobody --regid=nogroup --clear-groups \
  sbatch -N2 --output=/fsx/logs/%x-%j.log --job-name=train --wait /job.sh > /dev/null || true
for _ in $(seq 1000); do [ "$(grep -c '"output"' /var/log/ultracluster/jobs.log)" -ge 3 ] && break; sleep 0.2; done
cat /var/log/ultracluster/jobs.log
""",
    )
    ended, *lines = records_of(said)
    assert (ended["event"], ended["job"], ended["exit"], ended["restart"]) == ("ended", 1, "7:0", 0), errors
    assert (ended["user"], ended["queue"], ended["nodes"]) == ("nobody", "train", "gpu-[1-2]")
    assert ended["output"] == ["/fsx/logs/%x-%j.log"]
    assert {line["file"] for line in lines} == {"/fsx/logs/train-1.log"}
    assert {line["job"] for line in lines} == {1}
    assert [line["text"] for line in lines if line["event"] == "output"] == [
        'step 1 "loss" 2.5',
        "rank 0 of \\ fails",
        "rank 1 of \\ fails",
    ]


def test_the_output_of_a_failed_run_is_recorded_before_a_restart_overwrites_it(debian):
    said, errors = run(
        debian,
        """
cat > /job.sh <<'JOB'
#!/bin/bash
echo "run $SLURM_RESTART_COUNT"
[ -n "$SLURM_RESTART_COUNT" ] || scontrol requeue "$SLURM_JOB_ID"
sleep 30
JOB
sbatch -N1 --requeue --output=/tmp/again.log /job.sh > /dev/null
for _ in $(seq 1000); do [ "$(grep -c '"output"' /var/log/ultracluster/jobs.log)" -ge 2 ] && break; sleep 0.5; done
cat /var/log/ultracluster/jobs.log
""",
    )
    first, second = [line["text"] for line in records_of(said) if line["event"] == "output"]
    assert first == "run ", errors
    assert "DUE TO JOB REQUEUE" in second


def test_the_output_of_another_task_of_an_array_is_not_taken_for_that_of_a_job(debian):
    said, errors = run(
        debian,
        """
finish -N1 --array=1-2 --output=/tmp/a_%a.log --wrap 'echo task; sleep 2'
finish -N1 --array=7 --output=/tmp/b_%a.log --wrap 'echo alone'
for _ in $(seq 1000); do grep -q alone /var/log/ultracluster/jobs.log && break; sleep 0.2; done
cat /var/log/ultracluster/jobs.log
""",
    )
    found = [(line["event"], line.get("text")) for line in records_of(said) if line["event"] != "ended"]
    assert found == [("unclear", None), ("unclear", None), ("output", "alone")], errors


def test_an_output_that_the_user_may_not_read_is_not_read(debian):
    """A user could otherwise have root read any file into the logs."""
    said, errors = run(
        debian,
        """
install -m 600 /dev/null /tmp/secret; echo secret > /tmp/secret
cat > /job.sh <<'JOB'
#!/bin/bash
rm /fsx/out; ln -s /tmp/secret /fsx/out
JOB
mkdir -p /fsx; chmod 777 /fsx; chmod 755 /job.sh
setpriv --reuid=nobody --regid=nogroup --clear-groups sbatch --output=/fsx/out --wait /job.sh > /dev/null
for _ in $(seq 1000); do grep -q unreadable /var/log/ultracluster/jobs.log && break; sleep 0.2; done
cat /var/log/ultracluster/jobs.log
""",
    )
    events = {line["event"]: line for line in records_of(said)}
    assert events["unreadable"]["text"] == "Permission denied", errors
    assert "output" not in events


def test_the_output_of_a_job_is_recorded_only_where_it_is_asked_for(debian):
    said, errors = run(
        debian, "finish -N1 --output=/tmp/x --wrap 'echo private'; cat /var/log/ultracluster/jobs.log", records="ended"
    )
    assert [record["event"] for record in records_of(said)] == ["ended"], errors


def test_a_user_reads_no_record_of_others_and_a_pipe_as_output_holds_no_epilog(debian):
    """The attacker looks for an open file of the record in each process of its own, as long as the epilog runs."""
    said, errors = run(
        debian,
        """
mkdir -p /fsx /var/log/ultracluster; chmod 777 /fsx /tmp
echo '{"event": "of another user"}' > /var/log/ultracluster/jobs.log
cat > /attack.sh <<'ATTACK'
while [ ! -e /end ]; do
  for file in /proc/[0-9]*/fd/*; do
    case $(readlink "$file") in */jobs.log) cat "$file" > /tmp/stolen;; esac
  done
done 2> /dev/null
ATTACK
cat > /job.sh <<'JOB'
#!/bin/bash
rm /fsx/out; mkfifo /fsx/out
JOB
chmod 755 /job.sh /attack.sh
setpriv --reuid=nobody --regid=nogroup --clear-groups bash /attack.sh & attack=$!
setpriv --reuid=nobody --regid=nogroup --clear-groups sbatch -N1 --output=/fsx/out /job.sh > /dev/null
until [ "$(grep -c event /var/log/ultracluster/jobs.log)" -ge 2 ]; do sleep 0.2; done
until [ "$(sinfo -h -o %T)" = idle ]; do sleep 0.2; done
touch /end; wait "$attack"
[ ! -e /tmp/stolen ] || echo '{"event": "stolen"}'
echo "{\\"event\\": \\"mode $(stat --format %a /var/log/ultracluster/jobs.log)\\"}"
cat /var/log/ultracluster/jobs.log
""",
    )
    found = [(record["event"], record.get("text")) for record in records_of(said)]
    expected = [("mode 600", None), ("of another user", None), ("ended", None), ("unreadable", "not a regular file")]
    assert found == expected, errors


@pytest.mark.parametrize("line", ["", "x"])
def test_short_lines_do_not_make_a_record_large_and_its_end_is_kept(debian, line):
    said, errors = run(
        debian,
        f"""
finish -N1 --output=/fsx-out --wrap 'yes "{line}" | head -c 1000000; echo; echo; echo last'
until grep -q last /var/log/ultracluster/jobs.log; do sleep 0.2; done
stat --format %s /var/log/ultracluster/jobs.log; tail -n 2 /var/log/ultracluster/jobs.log
""",
    )
    size, *lines = said.splitlines()
    assert int(size) < 2_100_000, errors
    assert [record["text"] for record in records_of("\n".join(lines))] == ["", "last"]


@pytest.mark.parametrize(("status", "state"), [(0, "idle"), (1, "drained")])
def test_programs_of_the_user_run_too_in_the_order_of_slurm_and_decide(debian, status, state):
    for name in ("10-first", "20-second"):
        debian.write(f"/own.d/{name}", OWN, mode=0o755)
    debian.write("/epilog-of-mine", OWN + f"exit {status}\n", mode=0o755)
    said, errors = run(
        debian,
        f"""
finish -N1 -w gpu-1 --output=/tmp/x --wrap true
for _ in $(seq 1000); do [ "$(sinfo -h -n gpu-1 -o %T)" = {state} ] && break; sleep 0.3; done
cat /tmp/own.log
sinfo -h -n gpu-1 -o %T
""",
        own=("/own.d/*", "/epilog-of-mine"),
    )
    assert said.splitlines() == [
        "prolog_slurmd 20-second 1",
        "prolog_slurmd 10-first 1",
        "epilog_slurmd epilog-of-mine 1",
        state,
    ], errors


def test_parts_of_the_prolog_run_in_the_order_of_their_names_with_the_commands_of_slurm(debian):
    debian.write("/opt/ultracluster/prolog.d/20-second", PART, mode=0o755)
    debian.write("/opt/ultracluster/prolog.d/10-first", PART + "scontrol ping >> /tmp/parts.log\n", mode=0o755)
    debian.write("/opt/ultracluster/prolog.d/30-notes", PART)
    debian.write("/opt/ultracluster/epilog.d/10-end", PART, mode=0o755)
    debian.write("/own", OWN.replace("own.log", "parts.log"), mode=0o755)
    said, errors = run(
        debian,
        """
finish -N1 -w gpu-1 --output=/tmp/x --wrap true
for _ in $(seq 1000); do grep -q 10-end /tmp/parts.log && break; sleep 0.3; done
for _ in $(seq 1000); do [ "$(sinfo -h -n gpu-1 -o %T)" = idle ] && break; sleep 0.3; done
cat /tmp/parts.log
sinfo -h -n gpu-1 -o %T
""",
        own=("/own",),
    )
    assert said.splitlines() == [
        "10-first 1",
        "Slurmctld(primary) at node is UP",
        "20-second 1",
        "prolog_slurmd own 1",
        "10-end 1",
        "idle",
    ], errors


def test_a_process_of_a_user_that_is_called_slurmd_gives_root_no_commands(debian):
    debian.write("/evil/bin/scontrol", "#!/bin/bash\nid -u >> /tmp/attacked\n", mode=0o755)
    for command in ("timeout", "grep", "tail", "date"):
        debian.write(
            f"/evil/bin/{command}", f'#!/bin/bash\nid -u >> /tmp/attacked\n/usr/bin/{command} "$@"\n', mode=0o755
        )
    debian.write("/opt/ultracluster/prolog.d/10-asks", "#!/bin/bash\ncommand -v scontrol > /tmp/asked\n", mode=0o755)
    debian.boot([Step("write-health-checks", ("gpus=0", "efa=0", "prolog=fast"))])
    said, errors = run(
        debian,
        """
printf '#!/bin/bash\\n[ "$1" != show ] || pgrep --oldest --exact --uid 0 slurmd\\n' > /usr/local/sbin/systemctl
chmod 755 /usr/local/sbin/systemctl
[ "$(pgrep --oldest --exact slurmd)" = "$(pgrep --uid nobody slurmd)" ] && echo "the oldest is the user's"
finish -N1 -w gpu-1 --output=/tmp/x --wrap true
PCS_NODE_ID=gpu-1 /opt/ultracluster/health/health-check > /dev/null 2>&1
cat /tmp/asked; cat /tmp/attacked
""",
        prepare="""
mkdir -p /evil/sbin; cp /usr/bin/sleep /evil/sbin/slurmd; chmod 777 /tmp
setpriv --reuid=nobody --regid=nogroup --clear-groups /evil/sbin/slurmd 1000 &
until pgrep --exact slurmd > /dev/null; do sleep 0.1; done
""",
    )
    assert said.splitlines() == ["the oldest is the user's", "/usr/bin/scontrol"], errors


def test_a_part_that_fails_drains_the_node_and_the_job_runs_on_another(debian):
    debian.write("/opt/ultracluster/prolog.d/10-bad", FAILS_ON_1, mode=0o755)
    debian.write("/opt/ultracluster/prolog.d/20-next", PART, mode=0o755)
    said, errors = run(
        debian,
        """
sbatch -N1 --requeue --output=/tmp/x --wrap 'echo ran on $SLURMD_NODENAME' > /dev/null
for _ in $(seq 1000); do grep -qs ran /tmp/x && [ -z "$(squeue -h)" ] && break; sleep 0.5; done
cat /tmp/x /tmp/parts.log
sinfo -h -N -o '%N %T'
sed 's/^[^ ]* //' /var/log/ultracluster/job-programs.log
""",
    )
    assert said.splitlines() == [
        "ran on gpu-2",
        "20-next 1",
        "gpu-1 drained",
        "gpu-2 idle",
        "job 1: /opt/ultracluster/prolog.d/10-bad failed with 3: GPU 0 is lost ",
    ], errors


def test_a_part_that_does_not_end_fails_and_parts_of_the_epilog_all_run(debian):
    debian.run("bash", "-c", "mkdir -p /opt/ultracluster/epilog.d")
    debian.boot([Step("write-job-programs", ("ended",))])
    program = (
        debian.read("/opt/ultracluster/run-parts").replace("kill-after=5 60", "kill-after=1 3").replace("680", "40")
    )
    debian.write("/run-parts", program, mode=0o755)
    for name, body in (("10-hangs", "trap '' TERM; sleep 60; sleep 60"), ("20-good", PART), ("30-fails", "exit 5")):
        debian.write(f"/parts/epilog.d/{name}", f"#!/bin/bash\n{body}\n", mode=0o755)
        debian.write(f"/parts/prolog.d/{name}", f"#!/bin/bash\n{body}\n", mode=0o755)
    ran = debian.run(
        "bash",
        "-c",
        "for kind in prolog epilog; do /run-parts /parts/$kind.d; echo $kind $?; done; cat /tmp/parts.log; "
        "cut -d' ' -f4- /var/log/ultracluster/job-programs.log",
    )
    assert ran.stdout.splitlines() == [
        "prolog 137",
        "epilog 5",
        "20-good ",
        "/parts/prolog.d/10-hangs failed with 137: ",
        "/parts/epilog.d/10-hangs failed with 137: ",
        "/parts/epilog.d/30-fails failed with 5: ",
    ], ran.stderr
