"""Every Python process with this folder in PYTHONPATH reads environment files 18 months ahead: `make later`."""

import sys
from datetime import timedelta
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

AHEAD = timedelta(days=547)


class Later(PathFinder):
    """Finds the clock of environment files, and sets it ahead."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The clock that is ahead; None for every other module."""
        if name != "ultracluster.config.clock":
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            now = module.now
            module.now = lambda: now() + AHEAD

        loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Later)
