"""File systems that a PCS node mounts at every boot, over Lustre's own network and over NFS.

Source: FSx for Lustre User Guide, "Mounting automatically"; FSx for OpenZFS User Guide, "Mounting volumes"; EFS User
Guide, "Using Network File System to mount EFS file systems" (2026).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, lustre
from ultracluster.nodes.lustre import LustreMount, efa_step, module_option_steps
from ultracluster.nodes.steps import Step


@dataclass(frozen=True)
class NfsMount:
    """A file system to mount at `path` over NFS. `source` is SERVER:/FOLDER and may be a token."""

    source: str
    path: str
    options: tuple[str, ...]
    read_only: bool = False

    @property
    def argument(self) -> str:
        """The file system as an argument of the script that mounts it: what, where, and the options."""
        options = (*self.options, "_netdev", *(["ro"] if self.read_only else []))
        return f"{self.source} {self.path} {','.join(options)}"


Mount = LustreMount | NfsMount


def lustre_mounts(mounts: Sequence[Mount]) -> tuple[LustreMount, ...]:
    """The Lustre file systems among `mounts`."""
    return tuple(mount for mount in mounts if isinstance(mount, LustreMount))


def mount_steps(mounts: Sequence[Mount], hardware: InstanceType | None, *, efa: bool = True) -> list[Step]:
    """Steps that mount file systems at every boot and tune the client of Lustre.

    One step mounts all of a kind: PCS runs at most 20 scripts before slurmd. `hardware` is None for a login node,
    which mounts Lustre over TCP and is not tuned. Where a Lustre file system and the node have `efa`, AWS's client
    script sets EFA up, and the mount fails without it.
    """
    over_nfs = [mount.argument for mount in mounts if isinstance(mount, NfsMount)]
    first = [Step("mount-nfs", tuple(over_nfs), "every_boot")] if over_nfs else []
    systems = lustre_mounts(mounts)
    if not systems:
        return first
    arguments = tuple(mount.argument for mount in systems)
    over_tcp = Step("mount-lustre", ("network-online.target", "tcp", *arguments), "every_boot")
    if hardware is None:
        return [*first, over_tcp]
    steps = [*first, *module_option_steps(hardware)]
    if efa and any(mount.efa for mount in systems):
        steps.append(efa_step(required=True))
        steps.append(Step("mount-lustre", (lustre.EFA_CLIENT_UNIT, "efa", *arguments), "every_boot"))
    else:
        steps.append(over_tcp)
    if parameters := lustre.client_parameters(hardware):
        steps.append(
            Step("tune-lustre", (" ".join(mount.path for mount in systems), *parameters), "every_boot", required=False)
        )
    return steps
