"""Lustre clients: steps that PCS and EKS nodes share.

A PCS node mounts the file system at boot; an EKS node prepares for the FSx CSI driver to mount it.

Source: FSx for Lustre User Guide, "Configuring EFA clients", "Mounting automatically", "Performance tips" (2026); EKS
User Guide, "Optimize FSx for Lustre performance on nodes" (2026).
"""

from dataclasses import dataclass

from ultracluster.catalog import InstanceType, lustre
from ultracluster.nodes.steps import Step


@dataclass(frozen=True)
class LustreMount:
    """A file system to mount at `path`. `efa` is whether the file system has EFA enabled. Names may be tokens."""

    dns_name: str
    mount_name: str
    path: str
    efa: bool
    read_only: bool = False

    @property
    def argument(self) -> str:
        """The file system as an argument of the script that mounts it: what, where, and the options.

        relatime keeps access times, which release tasks use.
        """
        options = "relatime,flock,_netdev" + (",ro" if self.read_only else "")
        return f"{self.dns_name}@tcp:/{self.mount_name} {self.path} {options}"


def module_option_steps(hardware: InstanceType) -> list[Step]:
    """The step that sets options of Lustre's kernel modules, before anything loads them; none where none are set."""
    options = lustre.module_options(hardware)
    return [Step("set-lustre-module-options", options)] if options else []


def efa_step(*, required: bool) -> Step:
    """The step that sets up Lustre over EFA with AWS's client package; without EFA, Lustre uses TCP."""
    return Step("set-up-lustre-efa", (lustre.EFA_CLIENT_PACKAGE, lustre.EFA_CLIENT_UNIT), required=required)


def prepare_client_steps(hardware: InstanceType | None, *, efa: bool) -> list[Step]:
    """Steps of an EKS node: they install the Lustre client for the FSx CSI driver, and tune it.

    `hardware` is None for system nodes. EFA is tried where the file system and the node have it, but not required: AWS
    documents it for Amazon Linux 2023, but nobody has verified it on EKS's accelerated images. The kernel needs no
    hold: Amazon Linux 2023 upgrades nothing by itself.
    """
    client = [Step("install-lustre-client")]
    if hardware is None:
        return client
    parameters = lustre.client_parameters(hardware)
    return [
        *module_option_steps(hardware),
        *client,
        *([efa_step(required=False)] if efa else []),
        *([Step("tune-lustre-mounts", parameters)] if parameters else []),
    ]
