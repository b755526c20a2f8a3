"""`<env>-access`: the access host, and who may connect to the Kubernetes API or to login nodes."""

from dataclasses import replace

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.access_host import AccessHost
from ultracluster.constructs.security_groups import Ports, allow_range
from ultracluster.constructs.users import UserList, UserReader
from ultracluster.nodes.users import DirectorySource, UserSource, user_steps
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.network import NetworkStack

SSH, KUBERNETES_API = Ports("tcp", 22, 22), Ports("tcp", 443, 443)


class AccessStack(EnvironmentStack):
    """The access host, the list of users, and who may connect to members of the security group `entrance`.

    `entrance` is the group that EKS created with the cluster, or that of the login nodes of PCS; `port` is what they
    listen on. This stack only imports values that their stacks always export, so that it can be removed at any time.
    Never protected: it keeps no data.
    """

    users: UserSource | DirectorySource | None
    """Source of the users of machines; None without users."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        network: NetworkStack,
        entrance: str,
        port: Ports,
    ) -> None:
        super().__init__(scope, "access", environment, holds="Access of people")
        settings, place = environment.access, network.network
        what = "Kubernetes API" if port == KUBERNETES_API else "SSH"
        ranges = Construct(self, "Ranges")  # names below a construct end in a hash: 10.1.11.0 is not 10.11.1.0
        for cidr in settings.private_ranges:
            allow_range(ranges, cidr, target=entrance, ports=port, description=f"{what} for people")
        listed = self._listed(environment)
        self.users = listed.source if listed else None
        if settings.directory:
            self.users = DirectorySource(settings.directory, self.region)
        if settings.access_host:
            host = AccessHost(
                self,
                "Host",
                settings=settings.access_host,
                vpc=place.vpc_id,
                subnet=place.control_plane_subnet_ids[0],
                name=f"{environment.name}-host",
                steps=user_steps(_on_the_host(self.users)),
            )
            if self.users:
                host.wait_for(UserReader(self, "HostUsers", source=self.users, role=host.role))
            if listed:
                host.wait_for(listed)
            host.allow_to(entrance, "Entrance", ports=port, description=f"{what} for the access host")
            if place.endpoints:
                group = place.endpoints.security_group_id
                host.allow_to(group, "Endpoints", ports=KUBERNETES_API, description="AWS APIs for the access host")

    def _listed(self, environment: Environment) -> UserList | None:
        if environment.access.users is None:
            return None
        homes = environment.storage.homes is not None
        return UserList(self, "Users", settings=environment.access.users, name=environment.name, shared_homes=homes)


def _on_the_host(users: UserSource | DirectorySource | None) -> UserSource | DirectorySource | None:
    """The host mounts no file system."""
    return replace(users, shared_homes=False) if isinstance(users, UserSource) else users
