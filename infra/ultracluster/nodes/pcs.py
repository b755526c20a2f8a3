"""User data of AWS PCS nodes.

A cloud-config part runs before the node registers with PCS, a shell script after that and before slurmd starts.
Source: AWS PCS User Guide, "Working with Amazon EC2 user data" (2026).
"""

from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.disks import raid0_instance_store
from ultracluster.nodes.lustre import LustreMount, mount_lustre
from ultracluster.nodes.mime import cloud_config, multipart, shell_script


def login_node_user_data(mount: LustreMount | None) -> str:
    """User data of login nodes, which mount the file system over TCP."""
    mounts = [mount_lustre(mount, None)] if mount else []
    return _user_data(mounts)


def compute_node_user_data(group: NodeGroup, mount: LustreMount | None) -> str:
    """User data of the nodes of a node group."""
    disks = [raid0_instance_store()] if group.local_storage == "raid0" else []
    mounts = [mount_lustre(mount, group.hardware)] if mount else []
    return _user_data([*disks, *mounts])


def protect_slurmd() -> str:
    """cloud-config that keeps Ubuntu's needrestart from restarting slurmd, which would kill the node's jobs.

    needrestart runs during unattended upgrades.
    """
    return """#cloud-config
write_files:
  - path: /etc/needrestart/conf.d/slurmd.conf
    content: |
      $nrconf{override_rc}{qr(^slurmd)} = 0;
"""


def _user_data(scripts: list[str]) -> str:
    return multipart([cloud_config(protect_slurmd()), *map(shell_script, scripts)])
