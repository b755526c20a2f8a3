"""Synthesise prod, then every other shipped environment and example; print the seconds of the others as JSON."""

import json
import time

from tests.synthesis import FILES, synthesise
from ultracluster.config.loader import load

synthesise(load(FILES["prod"]))
seconds = {}
for name, file in FILES.items():
    if name != "prod":
        start = time.perf_counter()
        synthesise(load(file))
        seconds[name] = time.perf_counter() - start
print(json.dumps(seconds))
