"""Services and behaviour that moto lacks. Importing this package changes nothing; `activate()` adds them to moto."""

import functools
import importlib
import pkgutil
from typing import Any


@functools.cache
def activate() -> None:
    """Call `activate()` of every module in this package that has one, once in this process.

    Modules without it are shared helpers.
    """
    for found in pkgutil.iter_modules(__path__):
        module: Any = importlib.import_module(f"{__name__}.{found.name}")
        if hasattr(module, "activate"):
            module.activate()
