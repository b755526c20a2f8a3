"""The boot step that writes the health checks of a PCS node: check-node, its tables, and the programs that Slurm runs.

The script is generated: it contains the catalogue's verdicts of NVIDIA's XIDs, and floors of bandwidth.
"""

import json
import re
from functools import cache
from importlib.resources import files

from ultracluster.catalog.health import floors_by_type
from ultracluster.telemetry.xids import XIDS, nvlink5_units, verdict

NAME = "write-health-checks"
"""Name of the step that writes the programs."""

FOLDER = "/opt/ultracluster/health"
"""Folder of the programs on a node."""

HEALTH_CHECK = f"{FOLDER}/health-check"
"""Slurm's HealthCheckProgram."""

_SCRIPT = """#!/bin/bash
# Writes the health checks of the node. Arguments are facts about the node, NAME=VALUE.
# Slurm runs the checks in the prolog and as HealthCheckProgram: a node with a fault is drained.
set -euo pipefail
folder={folder}
mkdir -p "$folder" /opt/ultracluster/prolog.d /etc/ultracluster /var/log/ultracluster
chmod 700 /var/log/ultracluster
printf '%s\\n' "$@" > /etc/ultracluster/health.conf
cat > "$folder/tables.json" <<'TABLES'
{tables}
TABLES
cat > "$folder/check-node" <<'PROGRAM'
#!/usr/bin/python3 -IS
{program}PROGRAM
cat > "$folder/slurm.sh" <<'PROGRAM'
# Sourced by health checks and systemd units, whose environment lacks it: PATH, SLURM_CONF, and the name of the node.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# the image has several versions of Slurm; use the commands of the running slurmd
if slurmd=$(readlink "/proc/$(pgrep --oldest --exact slurmd)/exe"); then PATH=${{slurmd%/sbin/*}}/bin:$PATH; fi
if [ -e /run/slurm/conf/slurm.conf ]; then export SLURM_CONF=${{SLURM_CONF:-/run/slurm/conf/slurm.conf}}; fi
node=${{SLURMD_NODENAME:-${{PCS_NODE_ID:-}}}}
drain() {{ # reason
  timeout 10 scontrol update nodename="$node" state=drain reason="$1"
}}
failure_of() {{ # level: prints why the node fails the checks, also if check-node itself fails; nothing if it passes
  local reason
  reason=$({folder}/check-node "$1") || echo "${{reason:-health: isolate: limit: the checks of level $1 fail}}"
}}
PROGRAM
cat > /opt/ultracluster/prolog.d/10-health <<'PROGRAM'
#!/bin/bash
# Part of the prolog: drains the node and fails if it was not accepted, or if the fast checks find a fault.
. {folder}/slurm.sh
reason=$(cat /run/ultracluster/not-accepted 2> /dev/null)
[ -n "$reason" ] || ! grep -qx prolog=fast /etc/ultracluster/health.conf || reason=$(failure_of fast)
if [ -z "$reason" ]; then
  # a person returned the node before the quarantine ended
  timeout 20 systemctl --quiet stop quarantine.service 2> /dev/null
  exit 0
fi
drain "$reason"
echo "$reason"
exit 1
PROGRAM
cat > {check} <<'PROGRAM'
#!/bin/bash
# Slurm's HealthCheckProgram: drains the node if the fast checks find a fault. On an idle node that was drained for its
# health, it starts the quarantine: diagnostics of several hours, whose outcome becomes the reason of the drain.
. {folder}/slurm.sh
reason=$(failure_of fast)
shown=$(timeout 10 scontrol --oneliner show node "$node") || exit 0
[[ $shown =~ \\ State=([^ ]+) ]] && state=${{BASH_REMATCH[1]}}
if [[ $state != *DRAIN* ]]; then
  [ -z "$reason" ] || drain "$reason"
  exit 0
fi
[[ $shown =~ \\ Reason=((health|quarantine\\ runs):\\ .*)\\ \\[ ]] || exit 0
was=${{BASH_REMATCH[1]}}
grep -qx quarantine=full /etc/ultracluster/health.conf || exit 0
[[ $state =~ ALLOC|MIXED|COMPLETING|REBOOT|POWER ]] ||
  systemd-run --quiet --collect --unit=quarantine --setenv=SLURMD_NODENAME="$node" \\
    {folder}/quarantine "${{was#quarantine runs: }}" 2> /dev/null || true
PROGRAM
cat > "$folder/quarantine" <<'PROGRAM'
#!/bin/bash
# Runs diagnostics on a node that was drained for the reason $1. The node stays drained; the new reason is the outcome.
. {folder}/slurm.sh
drain "quarantine runs: $1"
failure=$(failure_of quarantine)
if [ -z "$failure" ]; then
  outcome="passed; was: $1"
else
  outcome="failed: $failure"
  [ "$failure" = "$1" ] || outcome+="; was: $1"
fi
# slurmctld does not answer for minutes during an update; a node that a person has returned meanwhile stays returned
for _ in $(seq 60); do
  if shown=$(timeout 10 scontrol --oneliner show node "$node"); then
    [[ ! $shown =~ \\ State=([^ ]*DRAIN) ]] || drain "quarantine $outcome"
    exit
  fi
  sleep 10
done
exit 1
PROGRAM
chmod 755 "$folder/check-node" "$folder/quarantine" {check} /opt/ultracluster/prolog.d/10-health
"""


_IMPORT = re.compile(r"^from ultracluster\.nodes\.programs\.(\w+) import (?:\([^)]*\)|.*)\n", re.MULTILINE)


@cache
def program(name: str) -> str:
    """Text of a program of `programs` as one file: each import of a module of `programs` is replaced by its text."""
    included = set[str]()

    def text_of(module: str) -> str:
        if module in included:
            return ""
        included.add(module)
        text = files("ultracluster.nodes").joinpath("programs", f"{module}.py").read_text("utf-8")
        return _IMPORT.sub(lambda found: text_of(found[1]), text)

    return text_of(name)


@cache
def tables() -> str:
    """Content of tables.json: verdicts of XIDs by their code, floors by instance type."""
    codes = {str(code): verdict(xid) for code, xid in XIDS.items()}
    floors = {name: each._asdict() for name, each in floors_by_type().items()}
    found = {"xids": codes, "nvlink5": nvlink5_units(), "floors": floors}
    return json.dumps(found, separators=(",", ":"))


def script_text() -> str:
    """The script of the step."""
    return _SCRIPT.format(folder=FOLDER, check=HEALTH_CHECK, tables=tables(), program=program("check_node"))
