"""A persistent volume and the only claim that can bind to it.

A volume binds to one claim, so each namespace has volumes of its own for the same storage.
"""

from collections.abc import Mapping, Sequence

from ultracluster.kubernetes.deployed import FileSystem, NfsExport
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.parts import Object

FILE_SYSTEM_OPTIONS = ("relatime", "flock")
"""Mount options that FSx advises. Access times stay, because tasks that release files use them.

Whether a mount uses EFA or TCP depends on the node.
"""

NOMINAL_SIZE = "1200Gi"
"""Size of every volume. Kubernetes requires one and does not use it here; these claims cannot be expanded."""


def file_system_claim(
    environment: EksEnvironment,
    namespace: str,
    claim: str,
    file_system: FileSystem,
    *,
    folder: str = "",
    read_only: bool = False,
) -> tuple[Object, Object]:
    """A mount of `folder` of the file system, an absolute path, or of the whole file system.

    Lustre mounts a folder as a fileset: the driver appends `mountname` to `DNS@tcp:/`, and nothing above the folder is
    reachable from the mount. Handles differ, because Kubernetes mounts volumes with one handle once in a pod; the
    driver uses them only as keys.

    Source: FSx for Lustre User Guide, "Mounting specific filesets" (2026); aws-fsx-csi-driver 1.9, pkg/driver/node.go;
    Kubernetes API, CSIPersistentVolumeSource, and pkg/volume/csi/csi_plugin.go.
    """
    source = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": f"{file_system.file_system_id}-{claim}.{namespace}",
        "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": f"{file_system.mount_name}{folder}"},
    }
    # not `readOnly` of the source: Kubernetes passes that only to drivers that attach volumes, which this one does not
    options = (*FILE_SYSTEM_OPTIONS, "ro") if read_only else FILE_SYSTEM_OPTIONS
    return volume_and_claim(environment, namespace, claim, {"csi": source}, options)


def nfs_claim(
    environment: EksEnvironment,
    namespace: str,
    claim: str,
    export: NfsExport,
    *,
    folder: str = "",
    read_only: bool = False,
) -> tuple[Object, Object]:
    """A mount of `folder` below what is exported, an absolute path, or of all of it.

    The kubelet mounts it with the kernel's client, which EKS's images have; there is no driver.

    Source: Kubernetes API, NFSVolumeSource; amazon-eks-ami, install-worker.sh of AL2023 (2026).
    """
    path = f"{export.folder.rstrip('/')}{folder}" or "/"
    options = (*export.options, "ro") if read_only else export.options
    return volume_and_claim(environment, namespace, claim, {"nfs": {"server": export.server, "path": path}}, options)


def volume_and_claim(
    environment: EksEnvironment, namespace: str, claim: str, source: Mapping[str, object], options: Sequence[str]
) -> tuple[Object, Object]:
    """A volume of `source`, a field of its spec, that is mounted with `options`, and its claim in a namespace."""
    name = volume_name(environment, namespace, claim)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": NOMINAL_SIZE},
            "claimRef": {"namespace": namespace, "name": claim},
            **source,
            "mountOptions": list(options),
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
        },
    }
    bound = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": NOMINAL_SIZE}},
            "storageClassName": "",
            "volumeName": name,
        },
    }
    return volume, bound


def volume_name(environment: EksEnvironment, namespace: str, claim: str) -> str:
    """Name of a volume, unique in the cluster: no name of a claim or a namespace has a dot."""
    return f"{environment.name}-{claim}.{namespace}"
