"""Amazon EKS for moto, in place of its own: clusters, node groups, add-ons, access entries, capabilities.

Resources become ACTIVE at once unless moto's state manager has other transitions for the models eks::cluster,
eks::nodegroup, eks::addon and eks::capability. No Kubernetes runs; the contents of a cluster are recorded
(`kubernetes.py`).
"""

import functools
from typing import Any

from localaws.services.eks_access import AccessActions
from localaws.services.eks_addons import AddonActions
from localaws.services.eks_clusters import ClusterActions
from localaws.services.eks_nodegroups import NodegroupActions
from localaws.services.eks_store import EksBackend
from localaws.services.service import add_service


class EksResponse(ClusterActions, NodegroupActions, AddonActions, AccessActions):
    """The actions of the EKS API."""


@functools.cache
def activate() -> Any:
    """Add EKS to moto. Returns the backends by account and Region."""
    paths = ("/clusters", "/clusters/(?P<rest>.+)", "/tags/(?P<arn>.+)", "/access-policies")
    return add_service("eks", EksBackend, EksResponse, paths)
