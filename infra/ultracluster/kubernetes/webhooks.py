"""Which objects wait for which Helm release, because the release's webhooks refuse them until they answer."""

from ultracluster.catalog.software import charts
from ultracluster.kubernetes.parts import Object, Objects, Part

GUARDS = {kind: chart.name for chart in charts.values() for kind in chart.webhooks}
"""Chart with webhooks for a kind, such as Queue.scheduling.run.ai."""


def guard(obj: Object) -> str | None:
    """The chart whose webhooks can refuse `obj`."""
    group, slash, _ = obj["apiVersion"].partition("/")
    return GUARDS.get(f"{obj['kind']}.{group}" if slash else obj["kind"])


def waits_for(part: Part, releases: dict[str, str]) -> frozenset[str]:
    """Releases that must be installed before `part`. `releases` maps a chart to the name of its release."""
    objects = part.items if isinstance(part, Objects) else ()
    found = {guard(obj) for obj in objects}
    return frozenset(releases[chart] for chart in found if chart in releases)
