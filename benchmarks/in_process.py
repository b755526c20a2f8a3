"""`python -m benchmarks.in_process`: CPU time in which the stacks of `prod` are deployed in one process.

There is no server. Before it, templates are synthesised, modules imported and the account prepared: assets, and what
the file names as existing. The first deployment parses the API models and schemas that it needs; later ones have them.
"""

import os
import time
from datetime import date

from localaws import accounts, activate, local_aws
from tests.deployment.in_process import create, in_order, prepare
from tests.synthesis import FILES, templates
from ultracluster.config.loader import load

ROUNDS = 6


def main() -> None:
    """Print seconds of the first deployment and of the quickest one after it."""
    activate()
    first, *later = [seconds("prod") for _ in range(ROUNDS)]
    print(f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"stacks of prod in process: first {first:.2f} s, later {min(later):.2f} s of CPU")


def seconds(name: str) -> float:
    """CPU seconds to create the stacks of a shipped environment. RuntimeError when one fails."""
    environment, parts = load(FILES[name]), templates(name)
    with local_aws(environment.account or accounts.DEFAULT):
        prepare(environment, parts)
        start = time.process_time()
        for part in in_order(parts):
            if (status := create(environment, part, parts[part])) != "CREATE_COMPLETE":
                raise RuntimeError(f"{part} is {status}")
        return time.process_time() - start


if __name__ == "__main__":
    main()
