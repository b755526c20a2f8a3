"""The step that writes the health checks of a PCS node: the program of `programs`, its tables, and what Slurm runs.

The script is generated, because its tables follow from those of NVIDIA's XIDs and of floors.
"""

import json
import re
from functools import cache
from importlib.resources import files

from ultracluster.catalog.health import floors_by_type
from ultracluster.telemetry.xids import XIDS, verdict

NAME = "write-health-checks"
"""Name of the step that writes the programs."""

FOLDER = "/opt/ultracluster/health"
"""Folder of the programs on a node."""

HEALTH_CHECK = f"{FOLDER}/health-check"
"""Slurm's HealthCheckProgram."""

_SCRIPT = """#!/bin/bash
# Writes the health checks of the node, with its facts, "NAME=VALUE" each.
# Slurm runs them before each job and every few minutes: a node with a fault is drained, and its jobs run to their end.
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
cat > "$folder/of-slurm" <<'PROGRAM'
# What Slurm's commands need, which a health check and a unit of systemd do not have, and the name of the node.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# the image has several versions of Slurm; commands are those of the slurmd that runs
if slurmd=$(readlink "/proc/$(pgrep --oldest --exact slurmd)/exe"); then PATH=${{slurmd%/sbin/*}}/bin:$PATH; fi
if [ -e /run/slurm/conf/slurm.conf ]; then export SLURM_CONF=${{SLURM_CONF:-/run/slurm/conf/slurm.conf}}; fi
node=${{SLURMD_NODENAME:-${{PCS_NODE_ID:-}}}}
drain() {{ # reason
  timeout 10 scontrol update nodename="$node" state=drain reason="$1"
}}
checked() {{ # level: prints the reason against the node, also if the checks themselves fail
  local found
  found=$({folder}/check-node "$1") || echo "${{found:-health: isolate: limit: the checks of level $1 fail}}"
}}
PROGRAM
cat > /opt/ultracluster/prolog.d/10-health <<'PROGRAM'
#!/bin/bash
# Part of the prolog: drains the node and fails if it was not accepted, or if the fast checks find a fault.
. {folder}/of-slurm
reason=$(cat /run/ultracluster/not-accepted 2> /dev/null)
[ -n "$reason" ] || ! grep -qx prolog=fast /etc/ultracluster/health.conf || reason=$(checked fast)
if [ -z "$reason" ]; then
  # of a node that was returned before its quarantine has ended
  timeout 20 systemctl --quiet stop quarantine.service 2> /dev/null
  exit 0
fi
drain "$reason"
echo "$reason"
exit 1
PROGRAM
cat > {check} <<'PROGRAM'
#!/bin/bash
# Slurm's health check: drains the node if the fast checks find a fault. On a node that was drained for its health and
# has no job, it starts the quarantine: diagnostics that take hours, whose outcome becomes the reason of the drain.
. {folder}/of-slurm
reason=$(checked fast)
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
# Checks the node, which was drained for the reason $1, level by level. It stays drained; the reason says how it went.
. {folder}/of-slurm
drain "quarantine runs: $1"
found=$(checked quarantine)
if [ -z "$found" ]; then
  found="passed; was: $1"
else
  found="failed: $found"
  [ "$found" = "failed: $1" ] || found+="; was: $1"
fi
# a controller that is updated does not answer for minutes; a node that a person has returned meanwhile is left alone
for _ in $(seq 60); do
  if shown=$(timeout 10 scontrol --oneliner show node "$node"); then
    [[ ! $shown =~ \\ State=([^ ]*DRAIN) ]] || drain "quarantine $found"
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
    """Text of a program of `programs`: one file, with the modules of `programs` that it imports in their place."""
    known = set[str]()

    def text_of(module: str) -> str:
        if module in known:
            return ""
        known.add(module)
        text = files("ultracluster.nodes").joinpath("programs", f"{module}.py").read_text("utf-8")
        return _IMPORT.sub(lambda found: text_of(found[1]), text)

    return text_of(name)


@cache
def tables() -> str:
    """What the checks know of XIDs and of floors, as JSON."""
    codes = {str(code): verdict(xid) for code, xid in XIDS.items()}
    floors = {name: each._asdict() for name, each in floors_by_type().items()}
    return json.dumps({"xids": codes, "floors": floors}, separators=(",", ":"))


def script_text() -> str:
    """The script of the step."""
    return _SCRIPT.format(folder=FOLDER, check=HEALTH_CHECK, tables=tables(), program=program("check_node"))
