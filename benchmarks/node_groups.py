"""Synthesise prod with 4 and with 64 node groups in turns; print both medians in seconds as JSON.

A PCS cluster supports 10 node groups, so validation rejects a file with 64. The groups are added to the environment
after validation; the constructs and stacks are the shipped ones.
"""

import json
import sys
from functools import partial

from benchmarks.timing import interleaved
from tests.synthesis import FILES, synthesise
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load


def with_groups(environment: Environment, count: int) -> Environment:
    """Return `environment` with `count` copies of its first group, all in its first queue."""
    first, plane = environment.node_groups[0], environment.control_plane
    groups = tuple(first.model_copy(update={"name": f"{first.name}-{i}"}) for i in range(count))
    queue = plane.queues[0].model_copy(update={"node_groups": tuple(group.name for group in groups)})
    return environment.model_copy(
        update={"node_groups": groups, "control_plane": plane.model_copy(update={"queues": (queue,), "size": "large"})}
    )


prod = load(FILES["prod"])
print(json.dumps(interleaved([partial(synthesise, with_groups(prod, count)) for count in (4, 64)], int(sys.argv[1]))))
