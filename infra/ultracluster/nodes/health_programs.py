"""The boot step that writes the health checks of a PCS node: check-node, its tables, and the programs that Slurm runs.

The script is generated: it contains the catalogue's time limits of checks and floors of bandwidth.
"""

import json
import re
from functools import cache
from importlib.resources import files

from ultracluster.catalog.health import FULL_SECONDS, floors_by_type

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
# the image has several versions of Slurm; use the commands of systemd's slurmd: any user can name a process slurmd
slurmd=$(timeout 5 systemctl show --property=MainPID --value slurmd.service)
if slurmd=$(readlink "/proc/$slurmd/exe"); then PATH=${{slurmd%/sbin/*}}/bin:$PATH; fi
if [ -e /run/slurm/conf/slurm.conf ]; then export SLURM_CONF=${{SLURM_CONF:-/run/slurm/conf/slurm.conf}}; fi
node=${{SLURMD_NODENAME:-${{PCS_NODE_ID:-}}}}
take_out() {{ # drain or power_down_asap, reason
  timeout 10 scontrol update nodename="$node" state="$1" reason="$2"
}}
failure_of() {{ # level: prints why the node fails the checks, also if check-node itself fails; nothing if it passes
  local reason
  reason=$({folder}/check-node "$1") || echo "${{reason:-health: isolate: limit: the checks of level $1 fail}}"
}}
PROGRAM
cat > /opt/ultracluster/prolog.d/10-health <<'PROGRAM'
#!/bin/bash
# Part of the prolog: fails if the node was not accepted, or if the fast checks find a fault. Slurm then drains the node
# for "Prolog error" and requeues the job. It does not call slurmctld, which waits for the prologs of many nodes at a
# time: the next periodic check writes the verdict into the reason.
. {folder}/slurm.sh
reason=$(cat /run/ultracluster/not-accepted 2> /dev/null)
[ -n "$reason" ] || ! grep -qx prolog=fast /etc/ultracluster/health.conf || reason=$(failure_of fast)
[ -z "$reason" ] || {{ echo "$reason"; exit 1; }}
PROGRAM
cat > {check} <<'PROGRAM'
#!/bin/bash
# Slurm's HealthCheckProgram: takes the node out of service if it was not accepted, or if the fast checks find a fault.
# Its jobs run to their end. A node of a dynamic group then powers down, so that PCS launches another; one that was not
# accepted stays, because the next one might fail too. A drain by a person is left alone.
. {folder}/slurm.sh
state=drain
if reason=$(cat /run/ultracluster/not-accepted 2> /dev/null); then :; else
  reason=$(failure_of fast)
  ! grep -qx dynamic=1 /etc/ultracluster/health.conf || state=power_down_asap
fi
[ -n "$reason" ] || exit 0
shown=$(timeout 10 scontrol --oneliner show node "$node") || exit 0
[[ $shown =~ \\ State=[^\\ ]*DRAIN && ! $shown =~ \\ Reason=Prolog\\ error ]] || take_out "$state" "$reason"
PROGRAM
chmod 755 "$folder/check-node" {check} /opt/ultracluster/prolog.d/10-health
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
    """Content of tables.json: time limits of the checks, floors by instance type."""
    floors = {name: each._asdict() for name, each in floors_by_type().items()}
    return json.dumps({"seconds": FULL_SECONDS, "floors": floors}, separators=(",", ":"))


def script_text() -> str:
    """The script of the step."""
    return _SCRIPT.format(folder=FOLDER, check=HEALTH_CHECK, tables=tables(), program=program("check_node"))
