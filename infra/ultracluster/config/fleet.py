"""The fleet: node groups, and the network and storage that they use. Rules of the control planes judge it."""

from typing import NamedTuple

from ultracluster.config.network import Network
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.storage import Storage


class Fleet(NamedTuple):
    """The node groups of an environment, whichever control plane runs them."""

    node_groups: tuple[NodeGroup, ...]
    network: Network
    storage: Storage

    @property
    def nodes(self) -> int:
        """Nodes at the maximum count of every group."""
        return sum(group.max_count for group in self.node_groups)

    @property
    def launched_groups(self) -> tuple[NodeGroup, ...]:
        """Node groups as they are launched: one group for each block of an UltraServer."""
        return tuple(part for group in self.node_groups for part in group.blocks())

    @property
    def known_groups(self) -> tuple[tuple[int, NodeGroup], ...]:
        """Groups with their index, except groups of an unknown type: another rule refuses those."""
        return tuple((i, group) for i, group in enumerate(self.node_groups) if group.known)

    @property
    def gpu_groups(self) -> tuple[tuple[int, NodeGroup], ...]:
        """Known groups with GPUs, with their index."""
        return tuple((i, group) for i, group in self.known_groups if group.hardware.gpu_count)

    @property
    def cpu_groups(self) -> frozenset[str]:
        """Names of known groups without GPUs."""
        return frozenset(group.name for _, group in self.known_groups if not group.hardware.gpu_count)
