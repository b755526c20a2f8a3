"""Numbers as Grafana writes them."""

import math
from typing import NamedTuple


class _Scale(NamedTuple):
    base: float
    prefixes: tuple[str, ...]
    suffix: str


_SI = ("", "k", "M", "G", "T", "P")
_SCALED = {
    "short": _Scale(1000, ("", " K", " Mil", " Bil", " Tri"), ""),
    "bps": _Scale(1000, _SI, "b/s"),
    "Bps": _Scale(1000, _SI, "B/s"),
    "decbytes": _Scale(1000, _SI, "B"),
    "bytes": _Scale(1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi"), "B"),
    "watt": _Scale(1000, _SI, "W"),
    "pps": _Scale(1000, ("", "k", "M", "G"), "p/s"),
    "ops": _Scale(1000, ("", "k", "M", "G"), "ops/s"),
    "reqps": _Scale(1000, ("", "k", "M", "G"), "req/s"),
    "hertz": _Scale(1000, _SI, "Hz"),
    "flops": _Scale(1000, ("", "k", "M", "G", "T", "P", "E"), "FLOP/s"),
}
_NICE_SECONDS = (10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_PLAIN = {"celsius": " °C", "percent": " %", "none": ""}


def format_value(value: float | None, unit: str, decimals: int | None = None) -> str:
    """A value with its unit; `unit` is Grafana's id of it."""
    if value is None or math.isnan(value):
        return "–"  # noqa: RUF001
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit == "percentunit":
        return f"{_number(100 * value, 1 if decimals is None else decimals)} %"
    if unit == "currencyUSD":
        return f"${value:,.{0 if decimals is None else decimals}f}"
    if unit in ("s", "dtdurations"):
        return _duration(value, decimals)
    if scale := _SCALED.get(unit):
        step = 0
        while abs(value) >= scale.base * 0.9995 and step < len(scale.prefixes) - 1:
            value, step = value / scale.base, step + 1
        number = _number(value, decimals if decimals is not None and not step else None)
        blank = " " if scale.suffix else ""
        return f"{number}{blank}{scale.prefixes[step]}{scale.suffix}"
    return f"{_number(value, decimals)}{_PLAIN.get(unit, '')}"


def _number(value: float, decimals: int | None) -> str:
    if decimals is None:
        decimals = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    text = f"{value:.{decimals}f}"
    return text if float(text) else text.replace("-", "")


def _duration(seconds: float, decimals: int | None) -> str:
    for size, name, above in ((604800, "week", 2), (86400, "day", 1), (3600, "h", 1), (60, "min", 1), (1, "s", 1)):
        if abs(seconds) >= size * above:
            plural = "s" if name in ("week", "day") and round(seconds / size, 1) != 1 else ""
            return f"{_number(seconds / size, 1 if decimals is None else decimals)} {name}{plural}"
    return f"{_number(seconds * 1000, None)} ms" if seconds else "0 s"


def ticks(low: float, high: float, count: int, unit: str, *, whole: bool = False) -> list[float]:
    """Round positions on an axis; whole numbers if `whole`."""
    if high <= low:
        return [low]
    base = 1024 if unit == "bytes" else 1000
    scale = (
        base ** max(0, math.floor(math.log(max(abs(low), abs(high)), base))) if unit == "bytes" and high >= base else 1
    )
    raw = (high - low) / count / scale
    if unit == "s" and high > 60:
        step: float = next((nice for nice in _NICE_SECONDS if nice >= raw), 604800)
        return [number * step for number in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
    size = 10 ** math.floor(math.log10(raw))
    step = scale * next(size * nice for nice in (1, 2, 2.5, 5, 10) if size * nice >= raw * 0.999)
    if whole and step != int(step) and step < 100:
        step = max(1.0, 2 * step)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
