"""Building blocks of PromQL expressions.

Series of a GPU carry the labels of the workload on it, so a series ends when a job ends, often because of the very
fault that we look for. Expressions therefore aggregate to the GPU before they compare in time: neither `increase()` nor
the `for` of an alert survives a change of labels.
"""

from ultracluster.telemetry.rules.model import CLUSTER, GPU

COLLECTED_SECONDS = 600
"""Age in seconds up to which a file of a collector is current. Collectors run at every scrape."""


def worst(metric: str, by: str = GPU) -> str:
    """The highest value for each combination of the labels `by`."""
    return f"max by ({by}) ({metric})"


def grown(metric: str, minutes: int, *, until: int = 0) -> str:
    """How much a counter of a GPU grew within `minutes`, which end `until` minutes ago, by instant queries.

    A restart of the counter within the window gives a negative value. A counter without a value before the window has
    not grown: for a new node or an exporter that was silent, the time of old errors is unknown.
    """
    now = worst(f"{metric} offset {until}m" if until else metric)
    return f"{now}\n- {worst(f'{metric} offset {until + minutes}m')}"


def collected(file: str) -> str:
    """Nodes whose collector has written `file`, such as efa, within `COLLECTED_SECONDS`.

    Node exporter gives the time of files that it could read and parse (collector/textfile.go), by name or by path.
    """
    written = f'max by ({CLUSTER}, node) (node_textfile_mtime_seconds{{file=~"(.*/)?{file}[.]prom"}})'
    return f"(time() - {written}\n< {COLLECTED_SECONDS})"


def either(*conditions: str) -> str:
    """Any of the conditions, joined by `or`."""
    return "\nor\n".join(conditions)
