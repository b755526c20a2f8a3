"""The scripts of `bootstrap`, as one step of a node: in order, each with its checksum, time limit and way to fail.

One step, because PCS runs at most 20 of a stage. EKS nodes download it, because user data is at most 16 KiB.
"""

import base64
import shlex
from collections.abc import Sequence

from ultracluster.config.bootstrap import Script
from ultracluster.nodes.steps import Step

NAME = "run-bootstrap"

FOLDER = "/var/lib/ultracluster/bootstrap"
"""Where a node keeps the scripts that it ran."""

_LINE = 120

_RUNNER = f"""#!/bin/bash
# Runs the scripts of `bootstrap` of node group $2 in order, as root. Region of the node: $1.
set -uo pipefail
export ULTRACLUSTER_REGION="$1" ULTRACLUSTER_NODE_GROUP="$2" AWS_DEFAULT_REGION="$1"
folder={FOLDER}
mkdir -p "$folder"
chmod 700 "$folder"

failed() {{ # script, reason, stop or continue
  echo "bootstrap: $1 $2" >&2
  if [ "$3" = stop ]; then
    exit 1
  fi
}}

download() {{ # script, bucket, key, version
  AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=10 \\
    aws s3api get-object --bucket "$2" --key "$3" --version-id "$4" "$folder/$1" > /dev/null
}}

run() {{ # script, SHA-256, time limit in seconds, stop or continue
  local status=0 start=$SECONDS
  if ! echo "$2  $folder/$1" | sha256sum --check --status; then
    failed "$1" "is not the script with SHA-256 $2" "$4"
    return
  fi
  chmod 700 "$folder/$1"
  echo "bootstrap: $1 starts"
  (cd "$folder" && exec timeout --kill-after=30 "$3" "./$1" < /dev/null) || status=$?
  if [ "$status" = 0 ]; then
    echo "bootstrap: $1 succeeded after $((SECONDS - start)) s"
  elif [ $((SECONDS - start)) -ge "$3" ]; then
    failed "$1" "was stopped after $3 s, its time limit" "$4"
  else
    failed "$1" "failed with exit status $status" "$4"
  fi
}}
"""


def bootstrap_step(scripts: Sequence[Script], *, region: str, node_group: str) -> Step | None:
    """The step that runs `scripts`; None without any. `region` may be a token."""
    if not scripts:
        return None
    parts = [_RUNNER, *(_part(number, script) for number, script in enumerate(scripts, 1))]
    objects = tuple("/".join(script.bucket_and_key) for script in scripts if script.bucket_and_key)
    return Step(NAME, (region, node_group), own_text="\n".join(parts), objects=objects)


def _part(number: int, script: Script) -> str:
    """Writes or downloads one script, and runs it. Its name begins with its number, so that no two are equal."""
    name = f"{number}-{script.name}"
    if script.bucket_and_key:
        source = shlex.join(("download", name, *script.bucket_and_key, script.version_id or ""))
        source += f' || rm -f "$folder/"{shlex.quote(name)}'
    else:
        encoded = base64.b64encode(script.content).decode()
        lines = "\n".join(encoded[i : i + _LINE] for i in range(0, len(encoded), _LINE))
        source = f"base64 --decode > \"$folder/\"{shlex.quote(name)} <<'END'\n{lines}\nEND"
    call = shlex.join(("run", name, script.checksum, str(script.timeout_seconds), script.on_failure))
    return f"# {number}. {script.source}\n{source}\n{call}\n"
