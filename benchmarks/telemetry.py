"""`python -m benchmarks.telemetry [NODES] [SECONDS]` scrapes a fleet with a local Prometheus and times the rules.

SECONDS is the scrape interval, 30 unless given. 1,000 nodes need 6 GB of memory and, at 30 seconds, two idle cores.
docs/observability-scale.md has the results.
"""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.timing import ROOT
from tests.telemetry.engines import Engines
from tests.telemetry.load import measure
from tests.telemetry.rules.environments import environment
from ultracluster.catalog import catalog
from ultracluster.telemetry.budget import Fleet, series
from ultracluster.telemetry.rules import groups, rule_files

SECONDS = 420
"""Rules look back over 5 minutes and more, so their cost is known only after that."""


def main() -> None:
    """Measure and print."""
    nodes, interval = (*map(int, sys.argv[1:3]), *(1000, 30)[len(sys.argv) - 1 :])
    folder = subprocess.run([ROOT / "scripts/engines.sh"], check=True, capture_output=True, text=True).stdout.strip()
    fleet = Fleet(nodes, catalog["p5.48xlarge"], "pcs")
    site = environment("pcs")
    with TemporaryDirectory() as database:
        found = measure(
            Engines(Path(folder)), Path(database), fleet, rule_files(site), interval=interval, seconds=SECONDS
        )
    print(f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{nodes} x p5.48xlarge, scraped every {interval} s")
    print(f"series {found.series:,} (budget {series(fleet):,}), {found.samples_per_second:,.0f} samples/s")
    print(f"failed scrapes {found.scrapes_failed}, slowest scrape {found.slowest_scrape:.2f} s")
    print(f"CPU {found.cpu_per_minute:.1f} s a minute, scrapes and rules together")
    print(f"memory {found.bytes / 1e9:.1f} GB, {found.bytes / found.series:,.0f} bytes a series")
    print(
        f"recorded series {found.recorded:,}, firing alerts {found.firing}, rule errors {found.rule_errors or 'none'}"
    )
    rules = {group.name: len(group.rules) for group in groups(site)}
    for name, seconds in sorted(found.rules.items(), key=lambda item: -item[1]):
        print(f"  {name:20} {rules[name]:3} rules {seconds:8.3f} s")
    print(f"  {'all':20} {sum(rules.values()):3} rules {found.rules_total:8.3f} s of every 60 s")


if __name__ == "__main__":
    main()
