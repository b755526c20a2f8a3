"""Models of the environment file, for tests of the effects of every field."""

from collections.abc import Iterator

from ultracluster.config.schema import environment_schema
from ultracluster.config.settings import Settings


def models() -> dict[str, type[Settings]]:
    """Models of the sections of an environment file, by name."""
    definitions = {"Environment", *environment_schema()["$defs"]}
    return {model.__name__: model for model in _below(Settings) if model.__name__ in definitions}


def _below(base: type[Settings]) -> Iterator[type[Settings]]:
    for model in base.__subclasses__():
        yield model
        yield from _below(model)
