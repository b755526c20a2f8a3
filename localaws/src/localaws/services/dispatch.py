"""Faster dispatch of requests: moto inspects all methods of a service's class for every request."""

import functools

from moto.core import responses


def activate() -> None:
    """Make moto inspect the methods of each class once. `services.activate()` has added ours by the first request."""
    responses.method_names_from_class = functools.cache(responses.method_names_from_class)
