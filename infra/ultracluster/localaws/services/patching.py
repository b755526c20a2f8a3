"""How a method of moto is mended: the stand-in gets the original and calls it, so only the fault's lines are ours."""

import functools
from collections.abc import Callable
from typing import Any


def patch_method(owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
    """Put `stand_in(original, self, ...)` in the place of the method `name` of `owner`."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stand_in(original, self, *args, **kwargs)

    setattr(owner, name, method)
