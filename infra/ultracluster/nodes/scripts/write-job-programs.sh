#!/bin/bash
# Writes the programs that Slurm runs on a node before and after each job: they tell DCGM exporter which job uses which GPU
# and, in the end, record the job for the log agent. Jobs fail on a node without the programs.
# Other steps add parts of their own: executables in prolog.d and epilog.d, whose names begin with two digits.
# The record of a job has the last of its output if $1 is output, not if it is ended. $2 and $3 are the user's own prolog and
# epilog, or empty: programs or patterns, which ours run last.
set -euo pipefail
mkdir -p /opt/ultracluster/prolog.d /opt/ultracluster/epilog.d /var/log/ultracluster
# it holds what jobs print, which other users of the node may not read
chmod 700 /var/log/ultracluster
echo "${1:-ended}" > /opt/ultracluster/records
printf '%s\n' "${2:-}" > /opt/ultracluster/own-prolog
printf '%s\n' "${3:-}" > /opt/ultracluster/own-epilog
cat > /opt/ultracluster/run-own <<'SCRIPT'
#!/bin/bash
# Runs the user's programs that the file $1 names, which may be a pattern, as slurmd does: in reverse order, all of them,
# and fails if one fails or there is none.
pattern=$(< "$1")
[ -n "$pattern" ] || exit 0
status=0
mapfile -t programs < <(compgen -G "$pattern" | LC_ALL=C /usr/bin/sort --reverse)
[ "${#programs[@]}" -gt 0 ] || status=1
for program in "${programs[@]}"; do
  "$program" || status=$?
done
exit "$status"
SCRIPT
cat > /opt/ultracluster/run-parts <<'SCRIPT'
#!/bin/bash
# Runs the executables of the folder $1 in the order of their names, each for at most 60 seconds, with the folder of
# this node's Slurm on the PATH. Parts of a prolog end at the first that fails, those of an epilog all run; it fails if
# one did. A part that fails, or does not end, is recorded with the last of its output.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
# the image has several versions of Slurm; commands are those of systemd's slurmd: any user can name a process slurmd
slurmd=$(timeout 5 systemctl show --property=MainPID --value slurmd.service)
slurmd=$(readlink "/proc/$slurmd/exe") && PATH=${slurmd%/sbin/*}/bin:$PATH
log=/var/log/ultracluster/job-programs.log
output=$(mktemp /run/ultracluster-part.XXXXXX) || exit
trap 'rm -f "$output"' EXIT
status=0
for part in "$1"/*; do
  [ -f "$part" ] && [ -x "$part" ] || continue
  timeout --kill-after=5 60 "$part" > "$output" 2>&1 < /dev/null &
  # timeout itself waits for a part that the kernel does not let go, such as one on a file system that does not answer
  for ((i = 0; i < 680; i++)); do
    kill -0 "$!" 2> /dev/null || break
    sleep 0.1
  done
  failed=124
  kill -0 "$!" 2> /dev/null || { wait "$!"; failed=$?; }
  [ "$failed" -ne 0 ] || continue
  status=$failed
  printf '%s job %s: %s failed with %s: %s\n' "$(date --utc +%Y-%m-%dT%H:%M:%SZ)" "${SLURM_JOB_ID:-}" "$part" "$failed" \
    "$(tail --bytes=500 "$output" | tr '\n' ' ')" >> "$log"
  [ "${1##*/}" = epilog.d ] || break
done
exit "$status"
SCRIPT
cat > /opt/ultracluster/prolog <<'SCRIPT'
#!/bin/bash
# Slurm's prolog: writes "JOB;ACCOUNT" to a file for each GPU of the job, which DCGM exporter makes a label of. It fails,
# which drains the node and requeues the job, only if a part or the user's own prolog does. Slurm gives it no PATH.
folder=/run/ultracluster/gpu-jobs
(
  PATH=/usr/local/bin:/usr/bin:/bin
  mkdir -p "$folder"
  exec 9> "$folder/.lock"
  flock -w 5 9
  for range in ${SLURM_JOB_GPUS//,/ }; do
    for ((gpu = ${range%-*}; gpu <= ${range#*-}; gpu++)); do
      echo "$SLURM_JOB_ID;${SLURM_JOB_ACCOUNT:-$SLURM_JOB_PARTITION}" >> "$folder/$gpu"
    done
  done
) 2> /dev/null
/opt/ultracluster/run-parts /opt/ultracluster/prolog.d || exit
exec /opt/ultracluster/run-own /opt/ultracluster/own-prolog
SCRIPT
cat > /opt/ultracluster/epilog <<'SCRIPT'
#!/bin/bash
# Slurm's epilog: removes the job from the files of its GPUs, and its metrics, and records the job on its first node, before
# a restart of the job overwrites its output. It fails, which drains the node, only if a part or the user's own epilog does;
# all of them run.
folder=/run/ultracluster/gpu-jobs
(
  PATH=/usr/local/bin:/usr/bin:/bin
  exec 9> "$folder/.lock"
  flock -w 5 9
  for file in "$folder"/[0-9]*; do
    sed -i "/^$SLURM_JOB_ID;/d" "$file"
    [ -s "$file" ] || rm -f "$file"
  done
  # metrics that the job wrote; a job of the same user that still runs writes its own again
  find /var/lib/node_exporter/jobs -maxdepth 1 ! -type d -uid "$SLURM_JOB_UID" -delete
) 2> /dev/null

first=$SLURM_JOB_NODELIST
if [[ $first =~ ^([^][,]+)(\[([0-9]+))? ]]; then
  first=${BASH_REMATCH[1]}${BASH_REMATCH[3]}
fi
[ "$first" != "$SLURMD_NODENAME" ] || /usr/bin/python3 -IS /opt/ultracluster/job-record < /dev/null > /dev/null 2>&1
/opt/ultracluster/run-parts /opt/ultracluster/epilog.d
status=$?
/opt/ultracluster/run-own /opt/ultracluster/own-epilog && exit "$status"
SCRIPT
cat > /opt/ultracluster/job-record <<'SCRIPT'
"""Appends lines of JSON to jobs.log: one that describes the job that has ended and, where `records` says output, its last lines.

The job's user may not read each file that the name of an output can point to, so a process of that user reads it into a
pipe. Root reads the pipe for ten seconds at most, and bounds what it writes.
"""

import glob
import json
import os
import pwd
import re
import select
import signal
import stat
import time

LIMIT, WRITTEN = 1_000_000, 2_000_000
deadline = time.monotonic() + 10
env = os.environ
job = {
    "job": int(env["SLURM_JOB_ID"]),
    "restart": int(env.get("SLURM_JOB_RESTART_COUNT", 0)),
    "user": env.get("SLURM_JOB_USER", ""),
    "account": env.get("SLURM_JOB_ACCOUNT", ""),
    "queue": env.get("SLURM_JOB_PARTITION", ""),
}
# what slurmd knows of the replacement symbols of sbatch; job name and array are not among it
KNOWN = {"j": env["SLURM_JOB_ID"], "J": env["SLURM_JOB_ID"], "u": job["user"], "N": env.get("SLURMD_NODENAME", ""), "%": "%"}


def symbol(found):
    width, letter = found.groups()
    return glob.escape(KNOWN[letter].zfill(int(width or 0))) if letter in KNOWN else "*"


def candidates(name):
    """Files that the name of an output may mean and that changed since the job started."""
    path = os.path.join(env.get("SLURM_JOB_WORK_DIR", "/"), name)
    parts = re.split(r"(%\d{0,2}[a-zA-Z%])", path)
    pattern = "".join(re.sub(r"%(\d*)(.)", symbol, part) if i % 2 else glob.escape(part) for i, part in enumerate(parts))
    started = int(env.get("SLURM_JOB_START_TIME", 0))
    return [file for file in glob.glob(pattern) if "*" not in pattern or os.stat(file).st_mtime >= started]


def send(name, pipe):
    """Writes a line of JSON, and the end of the file if it is clear which one is meant."""
    found = candidates(name)
    if len(found) != 1:
        os.write(pipe, json.dumps({"event": "unclear", "file": name, "files": found[:5]}).encode())
        return
    try:
        file = os.open(found[0], os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "not a regular file")
        text = os.pread(file, LIMIT, max(0, os.fstat(file).st_size - LIMIT))
    except OSError as problem:
        os.write(pipe, json.dumps({"event": "unreadable", "file": found[0], "text": problem.strerror}).encode())
        return
    with open(pipe, "wb") as end:
        end.write(json.dumps({"event": "output", "file": found[0]}).encode() + b"\n" + text)


def output_of(name):
    """What a process of the job's user sends. Setting the user id hides its memory and files from other processes of the user."""
    end, pipe = os.pipe()
    child = os.fork()
    if not child:
        try:
            user, group = int(env["SLURM_JOB_UID"]), int(env["SLURM_JOB_GID"])
            try:
                os.initgroups(pwd.getpwuid(user).pw_name, group)
            except KeyError:
                os.setgroups([group])
            os.setgid(group)
            os.setuid(user)
            send(name, pipe)
        finally:
            os._exit(0)
    os.close(pipe)
    text = b""
    while len(text) < LIMIT + 100_000 and select.select([end], [], [], max(0, deadline - time.monotonic()))[0]:
        read = os.read(end, 65536)
        if not read:
            break
        text += read
    # not waited for: the kernel may not let go of it while a file system does not answer
    os.kill(child, signal.SIGKILL)
    os.close(end)
    return text


def lines(name):
    """Records of one output: its last lines, runs of empty ones as one, and not more than WRITTEN bytes."""
    head, _, text = output_of(name).partition(b"\n")
    try:
        about = {**job, **json.loads(head)}
    except ValueError:
        return [json.dumps({**job, "event": "unreadable", "file": name, "text": "the file system does not answer"})]
    if about["event"] != "output":
        return [json.dumps(about)]
    found, size, before = [], 0, None
    for line in reversed(text.decode(errors="replace").splitlines()):
        if line.strip() or before:
            found.append(json.dumps({**about, "text": line}))
            size += len(found[-1])
        before = line.strip()
        if size > WRITTEN:
            break
    return found[::-1]


os.umask(0o077)
names = [env[name] for name in ("SLURM_JOB_STDOUT", "SLURM_JOB_STDERR") if env.get(name)]
ended = {"exit": env.get("SLURM_JOB_EXIT_CODE2", ""), "nodes": env.get("SLURM_JOB_NODELIST", ""), "output": names}
records = [json.dumps({**job, "event": "ended", **ended})]
with open("/opt/ultracluster/records") as wanted:
    if wanted.read().strip() == "output":
        records += [line for name in dict.fromkeys(names) for line in lines(name)]
with open("/var/log/ultracluster/jobs.log", "ab", buffering=0) as log:
    os.fchmod(log.fileno(), 0o600)
    log.write("".join(f"{line}\n" for line in records).encode())
SCRIPT
chmod 755 /opt/ultracluster/prolog /opt/ultracluster/epilog /opt/ultracluster/run-own /opt/ultracluster/run-parts
