"""The process behind the server: moto's WSGI application with everything of ours, on 127.0.0.1, for local callers."""

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from moto import mock_aws
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from ultracluster.localaws import activate, faults
from ultracluster.localaws.api import CloudFormation
from ultracluster.localaws.server import HOST
from ultracluster.localaws.services.capacity import seed_reservation
from ultracluster.localaws.services.kubernetes import contents
from ultracluster.localaws.stacks import stack_backends

PATIENCE_SECONDS = 8.0

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


def main(folder: Path) -> None:
    """Serve until SIGTERM; write `port` and `pid` once requests are answered."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    activate()
    CloudFormation.patience = PATIENCE_SECONDS
    # Handlers' boto3 clients are answered in this process, by the same services that the server shows.
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        server = make_server(HOST, 0, application(), threaded=True, request_handler=MotoRequestHandler)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        (folder / "port").write_text(str(server.port))
        (folder / "pid").write_text(str(os.getpid()))
        server.serve_forever()


def application() -> Wsgi:
    """AWS for local callers, and `/_localaws/` for its own affairs."""
    aws = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        if not is_local(request.host):
            return Response("the embedded AWS answers to localhost only\n", 403)(environ, start_response)
        if request.path.startswith("/_localaws/"):
            return _own(request)(environ, start_response)
        try:
            answered: Iterable[bytes] = aws(environ, start_response)
        except NotImplementedError as error:
            logging.getLogger(__name__).warning("%s", error)
            return _unknown_action(request, str(error))(environ, start_response)
        return answered

    return answer


def is_local(host: str) -> bool:
    """Whether a Host header names this machine: a web page that points its own name at 127.0.0.1 does not."""
    name = host.rsplit(":", 1)[0]
    return name in ("localhost", HOST) or name.endswith(".localhost")


def _unknown_action(request: Request, message: str) -> Response:
    """501, which AWS's clients do not try again, as they would a 500."""
    if "json" in (request.content_type or ""):
        return _json({"__type": "NotImplemented", "message": message}, 501)
    error = (
        f"<ErrorResponse><Error><Code>NotImplemented</Code><Message>{escape(message)}</Message></Error></ErrorResponse>"
    )
    return Response(error, 501, content_type="text/xml")


def _own(request: Request) -> Response:
    """The server's own affairs.

    Health, places and the contents of clusters can be asked for, reservations seeded; faults listed, injected (POST)
    and cleared (DELETE).
    """
    what = request.path.removeprefix("/_localaws/")
    if what.startswith("kubernetes/") and request.method == "GET":
        found = contents(what.removeprefix("kubernetes/"))
        return _json({"error": "no such cluster"}, 404) if found is None else _json(found)
    match what, request.method:
        case "health", "GET":
            return _json({"pid": os.getpid()})
        case "places", "GET":
            return _json(_places())
        case "reservations", "POST":
            try:
                seed_reservation(**json.loads(request.get_data()))
            except (ValueError, TypeError) as error:
                return _json({"error": str(error)}, 400)
            return _json({}, 201)
        case "faults", "GET":
            return _json([asdict(fault) for fault in faults.waiting()])
        case "faults", "POST":
            try:
                fault = json.loads(request.get_data())
                operations = tuple(fault.get("operations", ("create", "update")))
                faults.inject(fault["name"], fault["on"], times=fault.get("times", 1), operations=operations)
            except (ValueError, KeyError, TypeError) as error:
                return _json({"error": str(error)}, 400)
            return _json({}, 201)
        case "faults", "DELETE":
            faults.clear()
            return _json({})
    return _json({"error": f"nothing at {request.path}"}, 404)


def _places() -> list[tuple[str, str, list[str]]]:
    """Accounts and regions that have or had stacks, with the names of those that are there."""
    return [
        (account, region, sorted(stack.name for stack in backend.live()))
        for account, regions in stack_backends.items()
        for region, backend in regions.items()
        if backend.stacks
    ]


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
