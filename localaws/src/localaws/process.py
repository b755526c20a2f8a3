"""The server process: moto's WSGI application with the services added to it, on loopback, for its owner only."""

import errno
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast
from xml.sax.saxutils import escape

from moto import mock_aws
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import BaseWSGIServer, DechunkedInput, make_server
from werkzeug.wrappers import Request, Response

from localaws import activate, callers, estimate, faults
from localaws.api import CloudFormation
from localaws.server import HOST, HOST_IPV6, SECRET_LENGTH, write_private
from localaws.services import given
from localaws.services.capacity import seed_reservation
from localaws.services.kubernetes import contents
from localaws.stacks import forget_operations, stack_backends

WAIT_SECONDS = 8.0
SILENCE_SECONDS = 60
"""Time after which a client that sends nothing is disconnected, so that it holds no thread."""
LARGEST_BODY = 256 * 1024 * 1024
"""Bytes of the largest request, an S3 object. Its body is in memory several times."""
MOTO_PATHS = ("/moto-api", "/favicon.ico")  # moto's own interface, which can reset all state and record requests
XML_SERVICES = ("", "cloudfront", "route53", "s3")  # besides those with the query protocol
UNKNOWN_KEY = ("InvalidClientTokenId", "UnrecognizedClientException")
MALFORMED = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
NOT_IMPLEMENTED = ("NotImplemented", "NotImplemented")

NO_LENGTH = ("MissingContentLength", "MissingContentLength")
TOO_LARGE = ("EntityTooLarge", "RequestEntityTooLargeException")

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


class RequestHandler(MotoRequestHandler):  # type: ignore[misc]  # moto's handler has no types
    """moto's, for clients that go on."""

    timeout = SILENCE_SECONDS

    def make_environ(self) -> dict[str, Any]:
        """The WSGI environment. Reading a chunked body that ends early raises OSError."""
        environ: dict[str, Any] = super().make_environ()
        if isinstance(environ["wsgi.input"], DechunkedInput):
            environ["wsgi.input"] = DechunkedInput(cast("IO[bytes]", _WholeReads(self.rfile)))
        return environ


class _WholeReads:
    """A stream whose `read` raises OSError where the client sent less.

    On a short read werkzeug's DechunkedInput shrinks its caller's buffer, and CPython then reads past its end.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.readline = stream.readline

    def read(self, size: int) -> bytes:
        found: bytes = self._stream.read(size)
        if len(found) < size:
            raise OSError("The body ends within a chunk")
        return found


def main(folder: Path) -> None:
    """Serve until SIGTERM, with the secret in `folder`. Writes `port` and `pid` there when it is ready."""
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    activate()
    CloudFormation.wait_seconds = WAIT_SECONDS
    # The handlers' boto3 clients reach the same services in this process, without the server.
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        served = application((folder / "secret").read_text())
        server, *others = [_server(listening, served) for listening in sockets()]
        for other in others:
            threading.Thread(target=other.serve_forever, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        write_private(folder / "port", str(server.port))
        write_private(folder / "pid", str(os.getpid()))
        server.serve_forever()


def _server(listening: socket.socket, served: Wsgi) -> BaseWSGIServer:
    host, port = listening.getsockname()[:2]
    return make_server(host, port, served, threaded=True, request_handler=RequestHandler, fd=listening.fileno())


def sockets() -> list[socket.socket]:
    """Sockets that listen on 127.0.0.1 and, if the machine has IPv6, on the same port of ::1.

    Clients may resolve localhost to either address. Another user who listens on the other one would get their requests.
    """
    while True:
        listening = socket.create_server((HOST, 0))
        try:
            port = listening.getsockname()[1]
            return [listening, socket.create_server((HOST_IPV6, port), family=socket.AF_INET6)]
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return [listening]
            listening.close()


def application(secret: str) -> Wsgi:
    """AWS for callers that know the secret, and the control interface under `/_localaws/`."""
    if len(secret) < SECRET_LENGTH:
        raise ValueError("the secret of this server is missing or too short")
    aws = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        control = request.path.startswith("/_localaws/")
        try:
            callers.check_origin(request)
            if refused := _too_large(request):
                return refused(environ, start_response)
            if request.path.lower().startswith(MOTO_PATHS):
                return Response("Not found\n", 404)(environ, start_response)
            if control:
                callers.check_secret(request, secret)
                return _control(request)(environ, start_response)
            callers.check_signature(request, secret)
        except callers.NotServed as error:
            if control:
                return _json({"error": str(error)}, 403)(environ, start_response)
            return _aws_error(request, 403, UNKNOWN_KEY, str(error))(environ, start_response)
        try:
            answered: Iterable[bytes] = aws(environ, start_response)
        except NotImplementedError as error:
            logging.getLogger(__name__).warning("%s", error)
            # not 500, after which AWS's clients retry
            return _aws_error(request, 501, NOT_IMPLEMENTED, str(error))(environ, start_response)
        return answered

    return answer


def _too_large(request: Request) -> Response | None:
    """The refusal of a body that would fill the memory. Bodies that are no S3 objects are measured when read."""
    length = request.headers.get("X-Amz-Decoded-Content-Length", request.content_length, int)
    if (
        length is None
        and "chunked" in request.headers.get("Transfer-Encoding", "")
        and callers.service(request) == "s3"
    ):
        return _aws_error(request, 411, NO_LENGTH, "You must provide the Content-Length HTTP header.")
    if (length or 0) > LARGEST_BODY:
        message = f"The embedded AWS takes objects of at most {LARGEST_BODY} bytes"
        return _aws_error(request, 413, TOO_LARGE, message)
    return None


def _aws_error(request: Request, status: int, codes: tuple[str, str], message: str) -> Response:
    """An error in the protocol of the service that the request is for. `codes`: for XML, for JSON."""
    service, content_type = callers.service(request), request.content_type or ""
    query = "form-urlencoded" in content_type or "Action" in request.args
    if "json" in content_type or not (query or service in XML_SERVICES):
        answer = _json({"__type": codes[1], "message": message}, status)
        answer.headers["x-amzn-ErrorType"] = codes[1]
        return answer
    error = f"<Error><Code>{codes[0]}</Code><Message>{escape(message)}</Message></Error>"
    if service == "ec2":
        error = f"<Response><Errors>{error}</Errors></Response>"
    elif service != "s3":
        error = f"<ErrorResponse>{error}</ErrorResponse>"
    return Response(error, status, content_type="text/xml")


def _control(request: Request) -> Response:
    """The control interface under /_localaws/.

    GET health, deployments, kubernetes/CLUSTER_ARN, estimate and faults; POST reservations, resources and faults;
    DELETE estimate and faults.
    """
    try:
        return _controlled(request, request.path.removeprefix("/_localaws/"))
    except MALFORMED as error:
        return _json({"error": str(error)}, 400)


def _controlled(request: Request, what: str) -> Response:
    if what.startswith("kubernetes/") and request.method == "GET":
        found = contents(what.removeprefix("kubernetes/"))
        return _json({"error": "no such cluster"}, 404) if found is None else _json(found)
    match what, request.method:
        case "health", "GET":
            return _json({"pid": os.getpid()})
        case "deployments", "GET":
            return _json(_deployments())
        case "estimate", "GET":
            return _json(asdict(estimate(int(request.args.get("concurrency", "1")))))
        case "estimate", "DELETE":
            forget_operations()
            return _json({})
        case "reservations", "POST":
            seed_reservation(**json.loads(request.get_data()))
            return _json({}, 201)
        case "resources", "POST":
            given.create(**json.loads(request.get_data()))
            return _json({}, 201)
        case "faults", "GET":
            return _json([asdict(fault) for fault in faults.pending()])
        case "faults", "POST":
            fault = json.loads(request.get_data())
            operations = tuple(fault.get("operations", ("create", "update")))
            faults.inject(fault["name"], fault["on"], times=fault.get("times", 1), operations=operations)
            return _json({}, 201)
        case "faults", "DELETE":
            faults.clear()
            return _json({})
    return _json({"error": f"nothing at {request.path}"}, 404)


def _deployments() -> list[tuple[str, str, list[str]]]:
    """Accounts and Regions that have or had stacks, with the names of the existing stacks."""
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
