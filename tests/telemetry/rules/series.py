"""Synthetic series of a small cluster, one sample a minute, in the notation of promtool."""

from collections.abc import Mapping

Series = Mapping[str, str]
"""Values by series."""

CLUSTER = {"cluster": "uc", "environment": "test"}
NODE = {**CLUSTER, "node": "n1", "node_group": "train", "instance_type": "p5.48xlarge"}
GPU = {**NODE, "gpu": "0", "UUID": "GPU-0"}
JOB = {"team": "vision", "workload": "42"}


def steady(value: float, minutes: int) -> str:
    """One value for some minutes."""
    return f"{value:g}x{minutes - 1}" if minutes > 1 else f"{value:g}"


def rising(start: float, step: float, minutes: int) -> str:
    """A counter that grows by `step` each minute."""
    return f"{start:.15g}{step:+.15g}x{minutes - 1}"


def gone(minutes: int) -> str:
    """No sample: the series ends."""
    return f"stale _x{minutes - 1}" if minutes > 1 else "stale"


def absent(minutes: int) -> str:
    """No sample yet."""
    return f"_x{minutes}"


def then(*parts: str) -> str:
    """Parts one after the other."""
    return " ".join(parts)


def fault(good: float, bad: float, *, after: int = 10, minutes: int = 60, rest: int = 120) -> str:
    """A gauge that is good, then bad, then good again."""
    return then(steady(good, after), steady(bad, minutes), steady(good, rest))


def burst(step: float, *, after: int = 10, minutes: int = 60, rest: int = 120, start: float = 1e6) -> str:
    """A counter that stands still, grows by `step` each minute, then stands still again."""
    end = start + step * minutes
    return then(steady(start, after), rising(start + step, step, minutes), f"{end:.15g}x{rest - 1}")


def series(metric: str, labels: Mapping[str, str], **more: str) -> str:
    """A series in PromQL's notation."""
    every = {**labels, **more}
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in every.items()) + "}"


def on_node(metric: str, values: str, **more: str) -> dict[str, str]:
    """A series of the node n1."""
    return {series(metric, NODE, **more): values}


def on_gpu(metric: str, values: str, **more: str) -> dict[str, str]:
    """A series of GPU 0 of the node n1."""
    return {series(metric, GPU, **more): values}


def of_cluster(metric: str, values: str, **more: str) -> dict[str, str]:
    """A series of the cluster."""
    return {series(metric, CLUSTER, **more): values}
