"""Amazon EKS for moto, in place of its own: clusters, node groups, add-ons, access entries and what goes with them.

States pass at once unless moto's state manager is told otherwise for the models eks::cluster, eks::nodegroup,
eks::addon and eks::capability. No Kubernetes runs: what is put into a cluster is recorded (`kubernetes.py`).
"""

import functools
from typing import Any

from ultracluster.localaws.services.eks_access import AccessActions
from ultracluster.localaws.services.eks_addons import AddonActions
from ultracluster.localaws.services.eks_clusters import ClusterActions
from ultracluster.localaws.services.eks_nodegroups import NodegroupActions
from ultracluster.localaws.services.eks_store import EksBackend
from ultracluster.localaws.services.service import add_service


class EksResponse(ClusterActions, NodegroupActions, AddonActions, AccessActions):
    """The actions of the EKS API."""


@functools.cache
def activate() -> Any:
    """Make moto answer EKS; gives the backends by account and region."""
    paths = ("/clusters", "/clusters/(?P<rest>.+)", "/tags/(?P<arn>.+)", "/access-policies")
    return add_service("eks", EksBackend, EksResponse, paths)
