"""The embedded AWS as a background process on loopback: start it, ask for it, stop it.

Its folder holds `env` (shell exports for any AWS client), `pid`, `port` and `log`.
"""

import fcntl
import json
import os
import shlex
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ultracluster.localaws import accounts

FOLDER = Path(".localaws")
HOST = "127.0.0.1"  # never another
START_SECONDS = 60
STOP_SECONDS = 10


class ServerError(Exception):
    """The embedded AWS cannot be started or reached."""


class Place(NamedTuple):
    """An account and region that has or had stacks, and the names of those that are there."""

    account: str
    region: str
    stacks: tuple[str, ...]


@dataclass(frozen=True)
class Server:
    """A running embedded AWS."""

    folder: Path
    pid: int
    port: int

    @property
    def url(self) -> str:
        """Its endpoint. Not 127.0.0.1: moto tells S3's path-style requests by the name localhost."""
        return f"http://localhost:{self.port}"

    def places(self) -> list[Place]:
        """Where stacks are or were."""
        return [Place(account, region, tuple(stacks)) for account, region, stacks in _ask(self.port, "places")]

    def seed(self, reservation: Mapping[str, Any], account: str) -> None:
        """Let a capacity reservation exist; the keys are the arguments of `services.capacity.seed_reservation`."""
        _ask(self.port, "reservations", "POST", {**reservation, "account": account})

    def kubernetes(self, cluster_arn: str) -> dict[str, Any]:
        """What was put into the Kubernetes of an EKS cluster: `namespaces`, `releases` and `objects`, whole.

        Raises ServerError for an unknown cluster.
        """
        return kubernetes(self.url, cluster_arn)

    def connection(self, account: str) -> dict[str, str]:
        """Arguments that lead a boto3 client to the server, as a caller of `account`."""
        return {
            "endpoint_url": self.url,
            "aws_access_key_id": accounts.access_key(account),
            "aws_secret_access_key": accounts.SECRET,
        }

    def inject(self, name: str, on: str, *, times: int = 1, operations: Sequence[str] = ("create", "update")) -> None:
        """Let the next operations on a resource type or logical id fail, as `faults.inject` does in process."""
        fault = {"name": name, "on": on, "times": times, "operations": list(operations)}
        _ask(self.port, "faults", "POST", fault)

    def faults(self) -> list[dict[str, Any]]:
        """The faults that have not struck yet."""
        waiting: list[dict[str, Any]] = _ask(self.port, "faults")
        return waiting

    def clear_faults(self) -> None:
        """Forget every fault."""
        _ask(self.port, "faults", "DELETE")


def kubernetes(url: str, cluster_arn: str) -> dict[str, Any]:
    """What was put into the Kubernetes of an EKS cluster of the server at `url`."""
    found: dict[str, Any] = _ask(urlsplit(url).port or 80, f"kubernetes/{cluster_arn}")
    return found


def start(region: str, account: str = accounts.DEFAULT, folder: Path = FOLDER) -> Server:
    """The running server of `folder`, started if need be, with `env` written for this region and account.

    Raises ServerError when it does not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        server = status(folder) or _launch(folder)
        exports = environment(server.port, region, account)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in exports.items()]
        (folder / "env").write_text("".join(lines))
        return server


def status(folder: Path = FOLDER) -> Server | None:
    """The running server of `folder`, if one runs."""
    try:
        pid, port = (int((folder / name).read_text()) for name in ("pid", "port"))
    except (FileNotFoundError, ValueError):
        return None
    try:
        running: int = _ask(port, "health")["pid"]
    except ServerError:
        return None
    return Server(folder, pid, port) if running == pid else None  # the port may be another's by now


def stop(folder: Path = FOLDER) -> bool:
    """Stop the server of `folder`, and forget it; whether there was one. Raises ServerError if it does not end."""
    server = status(folder)
    if server:
        os.kill(server.pid, signal.SIGTERM)
        if not any(_ended(server.pid) for _ in _ticks(STOP_SECONDS)):
            raise ServerError(f"the embedded AWS (process {server.pid}) does not stop")
    for name in ("env", "pid", "port"):
        (folder / name).unlink(missing_ok=True)
    return server is not None


def environment(port: int, region: str, account: str = accounts.DEFAULT) -> dict[str, str]:
    """Environment variables that lead any AWS client of this machine to the server, and nowhere else."""
    return {
        "AWS_ENDPOINT_URL": f"http://localhost:{port}",
        "AWS_ACCESS_KEY_ID": accounts.access_key(account),
        "AWS_SECRET_ACCESS_KEY": accounts.SECRET,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "CDK_DEFAULT_ACCOUNT": account,
        "CDK_DEFAULT_REGION": region,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
    }


def _launch(folder: Path) -> Server:
    for name in ("pid", "port"):
        (folder / name).unlink(missing_ok=True)
    log = str(folder / "log")
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "ultracluster.localaws.serve", str(folder.resolve())],
        _clean(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,  # it outlives the terminal that started it
    )
    for _ in _ticks(START_SECONDS):
        if server := status(folder):
            return server
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            break
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    tail = (folder / "log").read_text(errors="replace").splitlines()[-15:]
    raise ServerError("\n".join([f"the embedded AWS did not start; the end of {log}:", *tail]))


def _ended(pid: int) -> bool:
    with suppress(ChildProcessError):  # another process than this may have started it
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _clean(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment without anything of the user's AWS configuration."""
    kept = {name: value for name, value in variables.items() if not name.startswith(("AWS_", "MOTO_"))}
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return {**kept, **nowhere, "AWS_EC2_METADATA_DISABLED": "true", "PYTHONUNBUFFERED": "1"}


def _ask(port: int, what: str, method: str = "GET", body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://{HOST}:{port}/_localaws/{what}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
    )
    try:
        # No proxy: this call stays on the machine whatever the user's environment says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=5) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise ServerError(error.read().decode(errors="replace")) from error
    except (OSError, ValueError) as error:
        raise ServerError(f"no embedded AWS answers on port {port}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One start at a time in a folder."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ticks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
