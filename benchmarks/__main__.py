"""`python -m benchmarks` prints goals and measurements. Exits with 0 even if a goal is missed: machines are noisy."""

import os
import platform
import subprocess
from datetime import date

from benchmarks import cases

ROUNDS = 5


def main() -> None:
    """Measure every case and print the table."""
    node = subprocess.run(["node", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, ", end="")
    print(f"Python {platform.python_version()}, Node {node}; medians of {ROUNDS} interleaved rounds\n")
    print(f"{'':48}{'goal':>9}{'measured':>12}")
    for case in (cases.validate, cases.synth, cases.further_environments, cases.node_groups):
        for result in case(ROUNDS):
            goal, measured = (_quantity(number, result.unit) for number in (result.goal, result.measured))
            verdict = "met" if result.met else "MISSED"
            print(f"{result.what:48}{goal:>9}{measured:>12}  {verdict:7} {result.details}", flush=True)


def _quantity(number: float, unit: str) -> str:
    return f"{number:.3g} {unit}" if unit == "s" else f"{number:.3g}{unit}"


if __name__ == "__main__":
    main()
