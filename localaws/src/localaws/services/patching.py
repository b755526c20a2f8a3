"""Replacement of moto's methods. The new method gets the original and calls it, so it contains only the correction."""

import functools
from collections.abc import Callable
from typing import Any


def patch_method(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace the method `name` of `owner` by `replacement(original, self, ...)`."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return replacement(original, self, *args, **kwargs)

    setattr(owner, name, method)
