"""A Grafana workspace of the embedded AWS behind a real HTTP server, with faults, for the code that fills it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3

from localaws import accounts
from localaws.services import grafana, grafana_http

REGION = "us-east-1"


class Workspace:
    """A workspace, its HTTP server, the calls that it got, and what CloudFormation got."""

    def __init__(self, workspace_id: str, backend: Any) -> None:
        self.id, self.backend = workspace_id, backend
        self.calls: list[str] = []
        self.responses: list[dict[str, Any]] = []
        self.faults: list[tuple[str, int]] = []
        """Patterns of calls that fail once each, and their status."""

    @property
    def inside(self) -> dict[str, dict[Any, Any]]:
        return self.backend.inside.setdefault(self.id, {})

    @property
    def accounts(self) -> dict[Any, Any]:
        return self.inside.get("accounts", {})

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if target == "/response":
            self.responses.append(json.loads(body))
            return 200, {}
        self.calls.append(f"{method} {target}")
        for fault in self.faults:
            if re.search(fault[0], self.calls[-1]):
                self.faults.remove(fault)
                return fault[1], {"message": "a fault of the test"}
        return grafana_http.answer(self.backend, self.id, method, target, dict(headers), body or None)


@contextmanager
def served(role: str) -> Iterator[tuple[Workspace, str]]:
    """A new workspace and the address of its server on loopback."""
    made = boto3.client("grafana", REGION).create_workspace(
        accountAccessType="CURRENT_ACCOUNT",
        permissionType="CUSTOMER_MANAGED",
        workspaceRoleArn=role,
        authenticationProviders=["AWS_SSO"],
        configuration='{"plugins": {"pluginAdminEnabled": true}}',
    )["workspace"]
    workspace = Workspace(made["id"], grafana.activate()[accounts.DEFAULT][REGION])

    class Requests(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, found = workspace.answer(self.command, self.path, self.headers, body)
            text = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of the standard library

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield workspace, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
