"""YAML that callers send, parsed after a check of its depth."""

from typing import Any

import yaml

MAX_DEPTH = 100
"""Levels of lists and mappings. CloudFormation documents no limit; the CDK's templates have up to 16."""
TOO_DEEP = f"Nesting is deeper than {MAX_DEPTH} levels"


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(source: str, loader: Any = _LOADER, *, aliases: bool = True) -> Any:
    """The document. ValueError for deep nesting, and for aliases unless they are allowed; yaml.YAMLError for bad YAML.

    PyYAML's C composer recurses without a limit and crashes the process.
    """
    depth = 0
    for event in yaml.parse(source, loader):
        if not aliases and isinstance(event, yaml.AliasEvent):  # nested aliases can expand to gigabytes
            raise ValueError("YAML aliases are not allowed in CloudFormation templates")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(TOO_DEEP)
    return yaml.load(source, loader)  # noqa: S506 - a safe loader
