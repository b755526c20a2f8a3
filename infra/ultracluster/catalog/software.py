"""Software of an EKS cluster, all of it pinned: EKS add-ons, Helm charts and manifests.

Source of every entry: `data/software.json`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from ultracluster.catalog.records import records

_SOFTWARE: dict[str, Any] = records("software")


@dataclass(frozen=True)
class Addon:
    """An EKS add-on. `service_account` is the service account that needs an IAM role, or None.

    `versions` maps a Kubernetes version to the tested add-on version. Without an entry EKS installs its default version
    and does not update it.
    """

    name: str
    namespace: str
    service_account: str | None
    versions: dict[str, str]


@dataclass(frozen=True)
class Chart:
    """A Helm chart. `repository` is an `https://` repository, or the full `oci://` reference with the chart's name.

    `api_groups` are the API groups of its CRDs. `images` maps the dotted path of every value that sets an image, or
    the registry of several images, to the original. `webhooks` are kinds, such as Queue.scheduling.run.ai, whose
    objects its webhooks refuse until they answer.
    """

    name: str
    repository: str
    version: str
    namespace: str
    minimum_kubernetes: str
    api_groups: tuple[str, ...]
    images: dict[str, str]
    webhooks: tuple[str, ...] = ()

    @property
    def oci(self) -> bool:
        """Whether the chart is in an OCI registry, whose reference includes the chart's name."""
        return self.repository.startswith("oci://")


@dataclass(frozen=True)
class Manifest:
    """Software published only as a manifest, at a URL with the commit; too large for client-side apply.

    `installer_image` contains the kubectl that applies the manifest server-side, from inside the cluster.
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
    """Source of a Helm release. For OCI, `repository` includes the chart's name."""

    chart: str
    repository: str
    version: str


addons: dict[str, Addon] = {name: Addon(name, **entry) for name, entry in _SOFTWARE["addons"].items()}
charts: dict[str, Chart] = {
    name: Chart(
        name,
        **{**entry, "api_groups": tuple(entry["api_groups"]), "webhooks": tuple(entry.get("webhooks", ()))},
    )
    for name, entry in _SOFTWARE["charts"].items()
}
manifests: dict[str, Manifest] = {
    name: Manifest(name, **{**entry, "api_groups": tuple(entry["api_groups"]), "images": tuple(entry["images"])})
    for name, entry in _SOFTWARE["manifests"].items()
}

images: dict[str, str] = _SOFTWARE["images"]
"""Images that Jobs and DaemonSets of the platform use, by purpose."""


def release_source(chart: Chart, mirror: str | None = None) -> ReleaseSource:
    """Source of `chart`: its own repository, or `mirror`, an `oci://` prefix that keeps chart names."""
    repository = f"{mirror.rstrip('/')}/{chart.name}" if mirror else chart.repository
    return ReleaseSource(chart.name, repository, chart.version)


def mirrored_values(chart: Chart, mirror: str) -> dict[str, Any]:
    """Helm values that pull every image of `chart` from `mirror`, an `oci://` prefix that keeps image paths."""
    values: dict[str, Any] = {}
    for path, original in chart.images.items():
        *parents, leaf = path.split(".")
        table = values
        for parent in parents:
            table = table.setdefault(parent, {})
        table[leaf] = mirrored_image(original, mirror)
    return values


def mirrored_image(original: str, mirror: str) -> str:
    """The image `original` in `mirror`: host and prefix of the mirror replace the registry's host."""
    _, _, path = original.partition("/")
    prefix = mirror.removeprefix("oci://").rstrip("/")
    return f"{prefix}/{path}" if path else prefix
