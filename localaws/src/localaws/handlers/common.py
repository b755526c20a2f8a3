"""Helpers of the handlers: undo incomplete creations, compare and convert tags."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from localaws.resources import HandlerError, Properties, is_gone, tag_map


@contextmanager
def undo_on_failure(undo: Callable[[], Any]) -> Iterator[None]:
    """Undo the first step of a creation when a later step fails, so that no orphan is left."""
    try:
        yield
    except Exception:
        undo()
        raise


@contextmanager
def suppress_gone() -> Iterator[None]:
    """Go on when what a call removes is not there."""
    try:
        yield
    except ClientError as error:
        if not is_gone(error):
            raise


def function_failed(reason: object) -> HandlerError:
    """The error of a custom resource whose function responds that it failed, in CloudFormation's words."""
    return HandlerError(f"Received response status [FAILED] from custom resource. Message returned: {reason}")


def json_text(document: Any) -> str:
    """A policy document as text, as AWS's APIs take it. Templates contain an object or text."""
    return document if isinstance(document, str) else json.dumps(document)


def tag_changes(old: Properties, new: Properties, name: str) -> tuple[dict[str, str], list[str]]:
    """Tags to set and tag keys to remove between two versions of a `Tags` property."""
    before, after = tag_map(old.get(name)), tag_map(new.get(name))
    added = {key: value for key, value in after.items() if before.get(key) != value}
    return added, [key for key in before if key not in after]


def require_only(value: Properties, names: set[str], where: str) -> None:
    """Raise HandlerError when a nested object has members that the embedded AWS does not support."""
    if dropped := sorted(value.keys() - names):
        raise HandlerError(f"the embedded AWS does not support {', '.join(dropped)} of {where}")
