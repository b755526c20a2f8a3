"""Services and behaviour that moto lacks. Importing this package changes nothing; `activate()` adds them to moto."""

import functools
import importlib
import pkgutil
from typing import Any

from localaws.services.patching import install


@functools.cache
def activate() -> None:
    """Install the corrections of all modules and call their `activate()`, if they have one, once in this process."""
    found: list[Any] = [importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    install()
    for module in found:
        if hasattr(module, "activate"):
            module.activate()
