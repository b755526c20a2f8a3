"""Corrections of moto: methods that replace others, and methods that are new. `services.activate()` installs them."""

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

_INSTALLERS: list[Callable[[], None]] = []


def patch(owner: Any, name: str) -> Callable[[Function], Function]:
    """Replace the method `name` of `owner` by `replacement(original, self, ...)`, which calls the original."""

    def register(replacement: Function) -> Function:
        def install() -> None:
            original = getattr(owner, name)

            @functools.wraps(original)
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                return replacement(original, self, *args, **kwargs)

            setattr(owner, name, method)

        _INSTALLERS.append(install)
        return replacement

    return register


def add(owner: Any, name: str) -> Callable[[Function], Function]:
    """Make a function the method `name` of `owner`, which has none."""

    def register(function: Function) -> Function:
        _INSTALLERS.append(lambda: setattr(owner, name, function))
        return function

    return register


def install() -> None:
    """Install all that is registered."""
    while _INSTALLERS:
        _INSTALLERS.pop(0)()
