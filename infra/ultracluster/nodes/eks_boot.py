"""The boot script of EKS nodes: runs steps, and powers the node off when one fails.

A failed script of cloud-init does not keep a node out of the cluster: nodeadm starts the kubelet after cloud-init
even if that failed. A startup taint that the last step removes would not either: the API server lets no kubelet remove
a taint of its own node (admission plugin NodeRestriction, kubernetes/kubernetes pull request 63167). So the node is
powered off before it joins. Its Auto Scaling group then replaces it, and Karpenter launches another. Until the last
step has succeeded, the kubelet does not start. The mark of that lies in cloud-init's folder of the instance, so that
it survives a reboot, but not into an image that is made of the node.

Source: amazon-eks-ami, nodeadm-run.service (2026); Amazon EC2 Auto Scaling User Guide, "Health checks for instances"
(2026): a stopped instance is unhealthy.
"""

import re
import shlex
from collections.abc import Sequence

from ultracluster.nodes.steps import Step, script

READY = "/var/lib/cloud/instance/ultracluster-ready"
"""File without which the kubelet of a guarded node does not start."""

_POWER_OFF = """  systemctl poweroff
  exit 1
"""


def guarded(steps: Sequence[Step]) -> str | None:
    """Script that runs `steps`; a node on which a required one fails powers off and never joins. None without steps."""
    if not steps:
        return None
    fence = f"""mkdir -p /etc/systemd/system/kubelet.service.d
printf '[Unit]\\nConditionPathExists=%s\\n' {READY} > /etc/systemd/system/kubelet.service.d/ultracluster.conf
systemctl daemon-reload
"""
    return _runner(steps, fence, _POWER_OFF) + f": > {READY}\n"


def unguarded(steps: Sequence[Step]) -> str | None:
    """Script that runs `steps` and reports those that fail. None without steps."""
    return _runner(steps, "", "") if steps else None


def inline(text: str) -> str:
    """A script without comments and empty lines: user data is at most 16 KiB."""
    return re.sub(r"(?m)^\s*(#(?!!).*)?\n", "", text)


def _runner(steps: Sequence[Step], fence: str, required_failed: str) -> str:
    """Each step is a file with a bash of its own: `set -e` has no effect in a function whose result is tested."""
    return f"""#!/bin/bash
set -uo pipefail
mkdir -p /var/lib/ultracluster
{fence}run() {{
  local file="/var/lib/ultracluster/$2.sh"
  cat > "$file"
  bash "$file" "${{@:3}}" && return
  echo "ultracluster: step $2 failed" >&2
  [ "$1" = optional ] && return
{required_failed}}}
{"".join(map(_call, steps))}"""


def _call(step: Step) -> str:
    kind = "required" if step.required else "optional"
    command = shlex.join((step.name, *step.arguments))
    return f"run {kind} {command} <<'END_OF_STEP'\n{inline(script(step.name).text)}END_OF_STEP\n"
