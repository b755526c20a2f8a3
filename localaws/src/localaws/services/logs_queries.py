"""CloudWatch Logs: saved queries of Logs Insights, which moto lacks, and the syntax that the service checks."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import unix_time_millis
from moto.logs.exceptions import ResourceNotFoundException
from moto.logs.responses import LogsResponse

from localaws.services.patching import add
from localaws.services.service import Refusal

COMMANDS = frozenset(
    {
        *("anomaly", "dedup", "diff", "display", "fields", "filter", "filterIndex", "join", "limit", "lookup"),
        *("parse", "pattern", "sort", "SOURCE", "stats", "subqueries", "unmask", "unnest"),
    }
)
"""Commands of the query language (CloudWatch Logs User Guide, "Supported commands", 2026)."""


def stages(query: str) -> Iterator[str]:
    """The commands of a query: what pipes separate, outside strings and regular expressions. Without comments."""
    text = re.sub(r"(?m)#.*$", "", query)
    stage, quote = "", ""
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[i - 1] != "\\" else quote
        elif character in "\"'" or (character == "/" and re.search(r"(like|=~|parse\s+\S+)\s*$", stage)):
            quote = character
        elif character == "|":
            yield stage.strip()
            stage = ""
            continue
        stage += character
    yield stage.strip()


def query_problem(query: str) -> str | None:
    """Why the service cannot parse a query, or None."""
    for stage in stages(query):
        command = stage.split(maxsplit=1)[0] if stage else ""
        if command not in COMMANDS:
            return f"unexpected symbol found {command or '|'} in {stage!r}"
    return None


@add(LogsResponse, "put_query_definition")
def _put(self: Any) -> ActionResult:
    given = {name: self._get_param(name) for name in ("name", "queryString", "logGroupNames")}
    if problem := query_problem(given["queryString"]):
        raise Refusal("MalformedQueryException", problem)
    for group in given["logGroupNames"] or ():
        if group not in self.logs_backend.groups:
            raise ResourceNotFoundException()
    stored, asked = _stored(self), self._get_param("queryDefinitionId")
    if asked and asked not in stored:
        raise ResourceNotFoundException()
    key = asked or str(uuid.uuid4())
    stored[key] = {"queryDefinitionId": key, "lastModified": int(unix_time_millis()), "queryLanguage": "CWLI", **given}
    return ActionResult({"queryDefinitionId": key})


@add(LogsResponse, "describe_query_definitions")
def _describe(self: Any) -> ActionResult:
    prefix = self._get_param("queryDefinitionNamePrefix") or ""
    return ActionResult({"queryDefinitions": [one for one in _stored(self).values() if one["name"].startswith(prefix)]})


@add(LogsResponse, "delete_query_definition")
def _delete(self: Any) -> ActionResult:
    if _stored(self).pop(self._get_param("queryDefinitionId"), None) is None:
        raise ResourceNotFoundException()
    return ActionResult({"success": True})


def _stored(self: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = self.logs_backend.__dict__.setdefault("query_definitions", {})
    return found
