"""Control plane logs: EKS creates the log group of a cluster that has none.

It does so with its service-linked role, also when the group is deleted shortly after the cluster, because the last
events arrive late (terraform-aws-eks issue 2763). In AWS that happens sometimes; here it happens once for each cluster.
"""

from typing import Any

from moto.logs.models import LogsBackend

from localaws.services.patching import patch
from localaws.services.references import References

LATE = "late_eks_groups"
"""Attribute of a logs backend: log groups of deleted clusters, into which EKS still writes."""


def enabled(cluster: Any) -> bool:
    """Whether a cluster writes any type of log."""
    return any(setup["enabled"] for setup in cluster["logging"]["clusterLogging"])


def write(references: References, cluster: Any) -> None:
    """Write the logs of a cluster. A group that does not exist is created, without key and retention."""
    logs, name = references.backend("logs"), _group(cluster)
    if enabled(cluster) and name not in logs.groups:
        logs.create_log_group(name, {})


def write_late(references: References, cluster: Any) -> None:
    """Write the last events of a deleted cluster after its log group is deleted."""
    if enabled(cluster):
        vars(references.backend("logs")).setdefault(LATE, set()).add(_group(cluster))


def _group(cluster: Any) -> str:
    return f"/aws/eks/{cluster['name']}/cluster"


@patch(LogsBackend, "delete_log_group")
def _delete_log_group(original: Any, self: Any, log_group_name: str) -> Any:
    answer = original(self, log_group_name)
    late: set[str] = vars(self).get(LATE, set())
    if log_group_name in late:
        late.remove(log_group_name)
        self.create_log_group(log_group_name, {})
    return answer
