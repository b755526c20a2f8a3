"""Containers under Slurm: the source of Enroot and Pyxis, and its rules with the fleet."""

from collections.abc import Iterator
from typing import Annotated

from ultracluster.catalog.containers import ROOT_VOLUME_GIB
from ultracluster.config.effects import NEW_FLEET
from ultracluster.config.fields import text
from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Path, Problem
from ultracluster.config.settings import Settings

AT: Path = ("control_plane", "containers")


class Containers(Settings):
    """A folder with packages of Enroot and Pyxis, which nodes install at their first boot if the image lacks them.

    docs/containers.md lists its files. Its file `SHA256SUMS` has the checksum of each.
    """

    files: Annotated[
        str,
        text(
            r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[a-zA-Z0-9!_.*'()-]+)*"
            r"|https://[a-zA-Z0-9.-]+(:\d{1,5})?(/[a-zA-Z0-9!_.*'()~-]+)*)$",
            "a folder such as s3://bucket/containers or https://host/containers, without / at the end",
            max_length=200,
        ),
        NEW_FLEET,
    ]
    """URL of the folder, in an existing bucket of storage.buckets or on a web server that nodes can reach."""
    sha256: Annotated[str, text(r"^[0-9a-f]{64}$", "64 hexadecimal digits in lower case"), NEW_FLEET]
    """SHA-256 of SHA256SUMS in the folder. Nodes install nothing else."""

    @property
    def bucket(self) -> str | None:
        """Name of the bucket; None for a web server."""
        return self.files.split("/")[2] if self.files.startswith("s3://") else None


def container_problems(fleet: Fleet, login_image: str, *, containers: Containers | bool) -> Iterator[Problem]:
    """Validation problems between containers and the fleet, at paths of the file."""
    match containers:
        case Containers():
            yield from _readable_folder(fleet, containers)
        case True:
            yield from _in_images(fleet, login_image)
        case _:
            return
    yield from _room_for_images(fleet)


def _in_images(fleet: Fleet, login_image: str) -> Iterator[Problem]:
    """AWS's PCS-ready image has neither Enroot nor Pyxis (AWS PCS User Guide, "AMI release notes", 2026)."""
    users_of_image = ["the login nodes"] if login_image == "auto" else []
    users_of_image += [group.name for group in fleet.node_groups if group.image == "auto"]
    if users_of_image:
        message = f"AWS's PCS image has neither Enroot nor Pyxis, and {' and '.join(users_of_image)} "
        message += "use it" if len(users_of_image) > 1 or login_image == "auto" else "uses it"
        hint = "set image: ami-... with Enroot and Pyxis, or set containers: {files: s3://..., sha256: ...}"
        yield Problem("containers-not-in-image", AT, message, hint)


def _readable_folder(fleet: Fleet, containers: Containers) -> Iterator[Problem]:
    """Nodes may read buckets of the file only; without NAT gateways they cannot reach the internet."""
    storage, create = fleet.storage, fleet.network.create
    readable = {bucket.existing for bucket in storage.buckets.values()} | {*storage.read_only_buckets}
    if containers.bucket:
        if containers.bucket not in readable:
            message = f"nodes cannot read {containers.bucket}: storage.buckets does not list it as existing"
            hint = f"add software: {{existing: {containers.bucket}, access: read}} to storage.buckets"
            yield Problem("containers-bucket-unknown", (*AT, "files"), message, hint)
    elif create and not create.nat_gateways:
        message = "without NAT gateways nodes cannot download files from the internet, so their boot fails"
        hint = "copy the folder to a bucket and set files: s3://..., or use a web server inside your network"
        yield Problem("containers-without-internet", (*AT, "files"), message, hint, "warning")


def _room_for_images(fleet: Fleet) -> Iterator[Problem]:
    """Images of training jobs take 10 to 30 GB, and twice as much while they are unpacked."""
    for i, group in fleet.known_groups:
        if not group.joins_disks and group.root_volume_gib < ROOT_VOLUME_GIB:
            message = f"containers are unpacked on the root volume of {group.root_volume_gib} GiB, which may fill up"
            hint = f"set root_volume_gib: {ROOT_VOLUME_GIB}"
            hint += ", or local_storage: raid0" if group.has_local_disks else ""
            yield Problem("containers-on-small-disk", ("node_groups", i, "root_volume_gib"), message, hint, "warning")
