"""What code of Lambda functions reaches by HTTP: CloudFormation's address for responses, and Grafana workspaces."""

import io
import json
import re
import urllib.error
from collections.abc import Callable
from email.message import Message
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request

RESPONSES = "cloudformation-custom-resource-response.invalid"
"""Host of the address that a custom resource sends its response to."""

GRAFANA = re.compile(r"(g-[0-9a-f]{10})\.grafana-workspace\.([a-z0-9-]+)\.amazonaws\.com")


class Response(io.BytesIO):
    """A response as `urllib.request.urlopen` returns it."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(body)
        self.status = status
        self.reason = HTTPStatus(status).phrase


def urlopen_in(account: str, respond: Callable[[dict[str, Any]], None]) -> Callable[..., Response]:
    """A replacement of `urllib.request.urlopen` for functions of an account. No request leaves the process.

    `respond` gets what the function sends to CloudFormation. Unknown hosts raise URLError.
    """

    def urlopen(request: Request | str, data: bytes | None = None, timeout: float = 0) -> Response:  # noqa: ARG001
        made = Request(request, data) if isinstance(request, str) else request  # noqa: S310 - not opened
        address = urlsplit(made.full_url)
        body = made.data if isinstance(made.data, bytes) else None
        if address.hostname == RESPONSES:
            respond(json.loads(body or b"{}"))
            return Response(200, b"")
        if found := GRAFANA.fullmatch(address.hostname or ""):
            return _grafana(account, found, made, body)
        raise urllib.error.URLError(f"the embedded AWS has no host {address.hostname}")

    return urlopen


def _grafana(account: str, host: re.Match[str], request: Request, body: bytes | None) -> Response:
    from localaws.services import grafana, grafana_http

    workspace, region = host.groups()
    backend = grafana.activate()[account][region]
    if workspace not in backend.configurations:
        raise urllib.error.URLError(f"no address for {host.group()}")
    address = urlsplit(request.full_url)
    target = address.path + (f"?{address.query}" if address.query else "")
    found = grafana_http.answer(backend, workspace, request.get_method(), target, request.headers, body)
    text = json.dumps(found.body).encode()
    if found.status >= 400:
        raise urllib.error.HTTPError(request.full_url, found.status, "", Message(), io.BytesIO(text))
    return Response(found.status, text)
