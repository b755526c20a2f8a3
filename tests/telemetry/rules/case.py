"""A test of one alert: when it fires, when it clears, and what looks like the fault but is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.telemetry.rules.series import Series


@dataclass(frozen=True)
class Case:
    """Series with a fault, and series without one.

    `fires` and `clears` are minutes at which the alert fires and no longer does. `labels` are those of the firing
    alerts, beside what the rule adds, one mapping each. `look_alikes` are by name; the alert never fires on them.
    `summary` is the rendered text.
    """

    alert: str
    faulty: Series
    fires: int
    clears: int
    labels: tuple[Mapping[str, str], ...]
    summary: str
    look_alikes: Mapping[str, Series] = field(default_factory=dict)
    sustained: str | None = None
    """`for` of the rule, where several rules have the name of the alert."""
    plane: str | None = None
    """Control plane whose rules are meant, where their rules differ."""
    also: tuple[str, ...] = ()
    """Further rules files that the test needs."""

    def tests(self, added: Mapping[str, str], sustained: str) -> list[dict[str, Any]]:
        """The tests for promtool. `added` are labels that the rule adds, `sustained` is its `for`."""
        firing = f'ALERTS{{alertname="{self.alert}", alertstate="firing", severity="{added["severity"]}"}}'
        expected = [
            {
                "labels": _text(
                    {"__name__": "ALERTS", "alertname": self.alert, "alertstate": "firing", **each, **added}
                ),
                "value": 1,
            }
            for each in self.labels
        ]
        during = [
            {"expr": firing, "eval_time": "4m", "exp_samples": []},
            {"expr": firing, "eval_time": f"{self.fires}m", "exp_samples": expected},
            {"expr": firing, "eval_time": f"{self.clears}m", "exp_samples": []},
            *self._pending(firing, int(sustained[:-1]) * {"m": 1, "h": 60}[sustained[-1]]),
        ]
        never = [{"expr": f"count_over_time({firing}[3d])", "eval_time": f"{self.clears}m", "exp_samples": []}]
        return [
            _test(f"{self.alert} fires and clears", self.faulty, during),
            *(_test(f"{self.alert}: {name}", each, never) for name, each in self.look_alikes.items()),
        ]

    def _pending(self, firing: str, minutes: int) -> list[dict[str, Any]]:
        """Before it fires, the alert is pending for as long as its rule says, a sample each minute."""
        pending = firing.replace('"firing"', '"pending"')
        waited = f"count(count_over_time({pending}[{self.fires + 1}m]) >= {minutes})"
        sample = {"labels": "{}", "value": len(self.labels)}
        return [{"expr": waited, "eval_time": f"{self.fires}m", "exp_samples": [sample]}] if minutes else []

    def report(self) -> dict[str, Any]:
        """A test that fails, so that promtool prints the firing alerts with their texts."""
        wrong = {"eval_time": f"{self.fires}m", "alertname": self.alert, "exp_alerts": []}
        return {**_test(self.alert, self.faulty, []), "alert_rule_test": [wrong]}


def _test(name: str, inputs: Series, checks: list[dict[str, Any]]) -> dict[str, Any]:
    shown = [{"series": each, "values": values} for each, values in inputs.items()]
    return {"name": name, "interval": "1m", "input_series": shown, "promql_expr_test": checks}


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
