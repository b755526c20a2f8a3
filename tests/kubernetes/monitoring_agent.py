"""AWS's node monitoring agent on one node, as far as its condition goes: it latches.

A stand-in, because Go's module proxy does not serve the agent; tests/servers judges where its DCGM pod may run.

Source: aws/eks-node-monitoring-agent v1.7.0: monitors/nvidia/monitor.go (one minute without DCGM is a Fatal DCGMError),
monitors/nvidia/dcgm/dcgm_policies.go (WellKnownXidCodes), pkg/manager/node_exporter.go (Fatal sets the condition to
False with the latest reason and the first time; nothing but a restart of its pod sets it to True).
"""

from collections.abc import Mapping, Sequence

GRACE_SECONDS = 60
FATAL_XIDS = {46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
"""WellKnownXidCodes: XIDs for which it sets its condition; others are events."""


def tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Whether a toleration matches a taint (Kubernetes, "Taints and Tolerations")."""
    same_key = toleration.get("key", taint["key"]) == taint["key"]
    same_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
    return same_key and same_value and toleration.get("effect", taint["effect"]) == taint["effect"]


class MonitoringAgent:
    """The agent with its dcgm-server pod, whose tolerations the add-on's configuration gives."""

    def __init__(self, configuration: Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]]) -> None:
        self.tolerations = configuration.get("dcgmAgent", {}).get("tolerations", ())
        self.condition = {"type": "AcceleratedHardwareReady", "status": "True"}

    def run(self, taints: Sequence[Mapping[str, str]], *, start: int, end: int) -> None:
        """The node has `taints` from second `start` to `end`; dcgm-server runs if it tolerates each of them."""
        served = all(any(tolerates(each, taint) for each in self.tolerations) for taint in taints)
        if not served and end - start > GRACE_SECONDS:
            self.fatal("DCGMError", start + GRACE_SECONDS)

    def xid(self, code: int, at: int) -> None:
        if code in FATAL_XIDS:
            self.fatal(f"NvidiaXID{code}Error", at)

    def fatal(self, reason: str, at: int) -> None:
        """The condition becomes, or stays, False; its time is that of the first fault."""
        first = self.condition.get("lastTransitionTime", at) if self.condition["status"] == "False" else at
        self.condition |= {"status": "False", "reason": reason, "lastTransitionTime": first}
