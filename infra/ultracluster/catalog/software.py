"""The software that gets into an EKS cluster, each piece pinned: add-ons of EKS, Helm charts and plain manifests.

Source of every entry: `data/software.json`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from ultracluster.catalog.records import records

_SOFTWARE: dict[str, Any] = records("software")


@dataclass(frozen=True)
class Addon:
    """An add-on that EKS installs. `service_account` is the one that needs an AWS role, None when none does.

    `versions` maps a Kubernetes version to the add-on version proven for it. Without an entry EKS chooses its default
    when it installs the add-on, and leaves it there.
    """

    name: str
    namespace: str
    service_account: str | None
    versions: dict[str, str]


@dataclass(frozen=True)
class Chart:
    """A Helm chart. `repository` is an `https://` repository, or the whole `oci://` reference with the chart's name.

    `api_groups` are those of the CRDs it brings. `images` maps the dotted path of every value that names an image, or
    the registry of several, to the original.
    """

    name: str
    repository: str
    version: str
    namespace: str
    minimum_kubernetes: str
    api_groups: tuple[str, ...]
    images: dict[str, str]

    @property
    def oci(self) -> bool:
        """Whether the chart lies in an OCI registry, which takes the chart's name within the reference."""
        return self.repository.startswith("oci://")


@dataclass(frozen=True)
class Manifest:
    """Software that comes only as a manifest, at a URL that names the commit; too big for client-side apply.

    `installer_image` carries the kubectl that applies it on the server side, from within the cluster.
    """

    name: str
    version: str
    commit: str
    url: str
    namespace: str
    api_groups: tuple[str, ...]
    images: tuple[str, ...]
    installer_image: str


class ReleaseSource(NamedTuple):
    """Where Helm takes a release from. For OCI `repository` holds the chart's name as well."""

    chart: str
    repository: str
    version: str


addons: dict[str, Addon] = {name: Addon(name, **entry) for name, entry in _SOFTWARE["addons"].items()}
charts: dict[str, Chart] = {
    name: Chart(name, **{**entry, "api_groups": tuple(entry["api_groups"])})
    for name, entry in _SOFTWARE["charts"].items()
}
manifests: dict[str, Manifest] = {
    name: Manifest(name, **{**entry, "api_groups": tuple(entry["api_groups"]), "images": tuple(entry["images"])})
    for name, entry in _SOFTWARE["manifests"].items()
}


def release_source(chart: Chart, mirror: str | None = None) -> ReleaseSource:
    """Where to take `chart` from: its own repository, or `mirror`, an `oci://` prefix that keeps chart names."""
    repository = f"{mirror.rstrip('/')}/{chart.name}" if mirror else chart.repository
    return ReleaseSource(chart.name, repository, chart.version)


def mirrored_values(chart: Chart, mirror: str) -> dict[str, Any]:
    """Values that take every image of `chart` from `mirror`, an `oci://` prefix that keeps each image's own path."""
    values: dict[str, Any] = {}
    for path, original in chart.images.items():
        *parents, leaf = path.split(".")
        table = values
        for parent in parents:
            table = table.setdefault(parent, {})
        table[leaf] = mirrored_image(original, mirror)
    return values


def mirrored_image(original: str, mirror: str) -> str:
    """The image `original` in `mirror`: the mirror's host and prefix take the place of the registry's host."""
    _, _, path = original.partition("/")
    prefix = mirror.removeprefix("oci://").rstrip("/")
    return f"{prefix}/{path}" if path else prefix
