"""What moto lacks, added to it from outside: importing this package changes nothing, `activate()` does."""

import functools
import importlib
import pkgutil
from typing import Any


@functools.cache
def activate() -> None:
    """Add to moto, once for this process, what the modules of this package hold: each has an `activate()` of its own.

    Modules without one are shared parts.
    """
    for found in pkgutil.iter_modules(__path__):
        module: Any = importlib.import_module(f"{__name__}.{found.name}")
        if hasattr(module, "activate"):
            module.activate()
