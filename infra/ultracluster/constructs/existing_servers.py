"""Rules between nodes and the security groups of file servers that exist."""

from collections.abc import Iterable

from constructs import Construct

from ultracluster.constructs.lustre import LUSTRE_PORTS
from ultracluster.constructs.nfs import EFS_PORTS, OPENZFS_PORTS
from ultracluster.constructs.security_groups import ALL_TRAFFIC, Ports, allow

_NFS = {"openzfs": OPENZFS_PORTS, "efs": EFS_PORTS}


class ExistingServers(Construct):
    """Security group rules between nodes and existing file systems.

    File systems may share a security group, and services share ports: EC2 refuses a rule that exists, so each is
    created once. `clients` is the security group of all nodes, `efa_clients` that of nodes that talk over EFA.
    """

    def __init__(self, scope: Construct, id: str, *, clients: str, efa_clients: str) -> None:
        super().__init__(scope, id)
        self._clients, self._efa_clients = clients, efa_clients

    def let_in(self, servers: str, *, service: str, efa: bool = False) -> None:
        """Opens the ports of a service, lustre, openzfs or efs, of the security group `servers`."""
        both = service == "lustre"
        self._open(servers, self._clients, LUSTRE_PORTS.values() if both else _NFS[service], both_ways=both)
        if efa:
            self._open(servers, self._efa_clients, [ALL_TRAFFIC], both_ways=True)

    def _open(self, servers: str, clients: str, ports: Iterable[Ports], *, both_ways: bool) -> None:
        for each in ports:
            name = f"{servers}-{'all' if each == ALL_TRAFFIC else f'{each.protocol}{each.start}'}"
            ways = [(f"{name}-In", clients, servers)] + ([(f"{name}-Out", servers, clients)] if both_ways else [])
            for way, source, target in ways:
                if self.node.try_find_child(f"{way}Egress") is None:
                    allow(self, way, source=source, target=target, ports=each, description="Existing file system")
