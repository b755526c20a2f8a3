"""The embedded AWS as a background process on loopback: start it, find it, stop it.

Its folder holds `env` (shell exports for any AWS client), `secret`, `pid`, `port`, `log` and `lock`. Each start makes a
new secret, and the server answers only requests that are signed with it: only the owner can read the folder.
"""

import fcntl
import json
import os
import secrets
import shlex
import signal
import stat
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from localaws import accounts
from localaws.estimates import Estimate

FOLDER = Path(".localaws")
HOST = "127.0.0.1"  # never another
HOST_IPV6 = "::1"
BOOTSTRAP_STACK = "CDKToolkit"
SECRET_HEADER = "X-Localaws-Secret"  # noqa: S105 - the header's name
SECRET_LENGTH = 40  # as AWS's secret access keys
LOCAL_NAMES = f"localhost,.localhost,{HOST}"
# Requests stay on this machine, whatever proxy the user's environment names.
NO_PROXY = f"""\
no_proxy="{LOCAL_NAMES},${{no_proxy:-${{NO_PROXY:-}}}}"
export no_proxy NO_PROXY="$no_proxy"
"""
# A profile or a session of the user's would take precedence over the keys, or be sent with them.
UNSET = "unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN AWS_SECURITY_TOKEN AWS_CREDENTIAL_EXPIRATION\n"
START_SECONDS = 180
STOP_SECONDS = 10
ANSWER_SECONDS = 60
"""It may be busy with a deployment. A server that has ended refuses the connection at once."""


class ServerError(Exception):
    """The embedded AWS cannot be started or reached."""


class Deployment(NamedTuple):
    """An account and Region that has or had stacks, with the names of the existing stacks."""

    account: str
    region: str
    stacks: tuple[str, ...]


@dataclass(frozen=True)
class Server:
    """A running embedded AWS."""

    folder: Path
    pid: int
    port: int
    secret: str = field(repr=False)

    @property
    def url(self) -> str:
        """The endpoint. Not 127.0.0.1, because moto recognises path-style requests to S3 by the name localhost."""
        return f"http://localhost:{self.port}"

    def deployments(self) -> list[Deployment]:
        """Accounts and Regions that have or had stacks."""
        listed = _request(self.port, self.secret, "deployments")
        return [Deployment(account, region, tuple(stacks)) for account, region, stacks in listed]

    def stacks(self) -> list[str]:
        """The names of all existing stacks, without that of the CDK's bootstrap."""
        found = [name for deployment in self.deployments() for name in deployment.stacks]
        return [name for name in found if name != BOOTSTRAP_STACK]

    def seed(self, reservation: Mapping[str, Any], account: str) -> None:
        """Create a capacity reservation; the keys are the arguments of `services.capacity.seed_reservation`."""
        _request(self.port, self.secret, "reservations", "POST", {**reservation, "account": account})

    def create(
        self,
        service: str,
        operation: str,
        arguments: Mapping[str, Any],
        *,
        account: str,
        region: str,
        id: str | None = None,
    ) -> None:
        """Call an operation of boto3's client of a service, and give what it creates the id `id`.

        ServerError when AWS would refuse the call.
        """
        call: dict[str, Any] = {"service": service, "operation": operation, "arguments": dict(arguments)}
        call |= {"account": account, "region": region, "id": id}
        _request(self.port, self.secret, "resources", "POST", call)

    def kubernetes(self, cluster_arn: str) -> dict[str, Any]:
        """The recorded contents of an EKS cluster: `namespaces`, `releases` and `objects`.

        Raises ServerError for an unknown cluster.
        """
        return kubernetes(self.url, self.secret, cluster_arn)

    def connection(self, account: str) -> dict[str, str]:
        """Arguments for boto3 clients that call the server in `account`."""
        return {
            "endpoint_url": self.url,
            "aws_access_key_id": accounts.access_key(account),
            "aws_secret_access_key": self.secret,
        }

    def environment(self, region: str, account: str = accounts.DEFAULT) -> dict[str, str]:
        """Environment variables with which AWS clients call this server, and only it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": accounts.access_key(account),
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "CDK_DEFAULT_ACCOUNT": account,
            "CDK_DEFAULT_REGION": region,
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        }

    def inject(self, name: str, on: str, *, times: int = 1, operations: Sequence[str] = ("create", "update")) -> None:
        """Fail the next operations on a resource type or logical id, as `faults.inject` does in process."""
        fault = {"name": name, "on": on, "times": times, "operations": list(operations)}
        _request(self.port, self.secret, "faults", "POST", fault)

    def faults(self) -> list[dict[str, Any]]:
        """The faults that are not used up."""
        pending: list[dict[str, Any]] = _request(self.port, self.secret, "faults")
        return pending

    def estimate(self, concurrency: int = 1) -> Estimate:
        """How long the stack operations since the start or `forget_operations` would take in an account.

        `concurrency`: stacks that the CDK CLI deploys at a time, its option of that name.
        """
        return Estimate.of(_request(self.port, self.secret, f"estimate?concurrency={concurrency}"))

    def forget_operations(self) -> None:
        """Let the next estimate begin here."""
        _request(self.port, self.secret, "estimate", "DELETE")

    def clear_faults(self) -> None:
        """Remove all faults."""
        _request(self.port, self.secret, "faults", "DELETE")


def stay_on_this_machine() -> None:
    """Set the user's proxy and AWS profile aside in this process, so that its AWS clients call the server only."""
    os.environ.pop("AWS_PROFILE", None)
    os.environ.pop("AWS_DEFAULT_PROFILE", None)
    os.environ["no_proxy"] = f"{LOCAL_NAMES},{os.environ.get('no_proxy') or os.environ.get('NO_PROXY', '')}"


def kubernetes(url: str, secret: str, cluster_arn: str) -> dict[str, Any]:
    """The recorded contents of an EKS cluster of the server at `url`."""
    found: dict[str, Any] = _request(urlsplit(url).port or 80, secret, f"kubernetes/{cluster_arn}")
    return found


def serve(region: str, account: str = accounts.DEFAULT, folder: Path = FOLDER) -> Server:
    """Start the server of `folder` unless it runs, and write `env` for this Region and account.

    Raises ServerError when it does not start, and ValueError for an account that is none.
    """
    accounts.access_key(account)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(folder)
    except OSError as error:
        raise ServerError(f"the embedded AWS cannot use its folder: {error}") from error
    with _locked(folder):
        server = status(folder) or _launch(folder)
        exports = server.environment(region, account)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in exports.items()]
        write_private(folder / "env", "".join([UNSET, *lines, NO_PROXY]))
        return server


def status(folder: Path = FOLDER) -> Server | None:
    """The running server of `folder`, if one runs. Folders that other users can write to are not trusted."""
    try:
        if not _is_private(folder.lstat()):
            return None
        pid, port = (int((folder / name).read_text()) for name in ("pid", "port"))
        secret = (folder / "secret").read_text()
        os.kill(pid, 0)  # never send the secret to another user's process on that port
        running: int = _request(port, secret, "health")["pid"]
    except (OSError, ValueError, ServerError):
        return None
    return Server(folder, pid, port, secret) if running == pid else None  # another server may use the port now


def stop(folder: Path = FOLDER) -> bool:
    """Stop the server of `folder` and remove its files. False when none ran. Raises ServerError if it does not stop."""
    server = status(folder)
    if server:
        for wanted in (signal.SIGTERM, signal.SIGKILL):  # its state is lost either way
            os.kill(server.pid, wanted)
            if any(_has_exited(server.pid) for _ in _polls(STOP_SECONDS)):
                break
        else:
            raise ServerError(f"the embedded AWS (process {server.pid}) does not stop")
    for name in ("env", "pid", "port", "secret"):
        (folder / name).unlink(missing_ok=True)
    return server is not None


def _is_private(found: os.stat_result) -> bool:
    """Whether this is a folder, not a symbolic link, of this user, and closed to all others."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _make_private(folder: Path) -> None:
    """Close the folder to other users, and remove the files that they may have put there.

    OSError if it is a symbolic link or belongs to another user.
    """
    if folder.is_symlink():
        raise OSError(f"{folder} is a symbolic link")
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another user")
        if not _is_private(found):
            os.fchmod(opened, 0o700)
            if not _is_private(os.fstat(opened)):
                raise PermissionError(f"the file system of {folder} does not keep permissions")
            for name in ("env", "lock", "log", "pid", "port", "secret"):
                (folder / name).unlink(missing_ok=True)
    finally:
        os.close(opened)


def write_private(file: Path, text: str) -> None:
    """Replace a file by one that only its owner can read."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)


def _launch(folder: Path) -> Server:
    for name in ("pid", "port", "log"):
        (folder / name).unlink(missing_ok=True)
    write_private(folder / "secret", secrets.token_hex(SECRET_LENGTH // 2))
    log = str(folder / "log")
    pid = os.posix_spawn(
        sys.executable,
        # -P: do not import modules from the current folder, which may be /tmp
        [sys.executable, "-P", "-m", "localaws.process", str(folder.resolve())],
        _without_aws_settings(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,  # the server outlives the terminal that started it
    )
    try:
        for _ in _polls(START_SECONDS):
            if server := status(folder):
                return server
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                break
        else:
            _kill(pid)
    except BaseException:  # Ctrl-C: a server that nobody knows would go on, and write its port beside the next one's
        _kill(pid)
        raise
    tail = (folder / "log").read_text(errors="replace").splitlines()[-15:]
    raise ServerError("\n".join([f"the embedded AWS did not start; the end of {log}:", *tail]))


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _has_exited(pid: int) -> bool:
    with suppress(ChildProcessError):  # another process may have started it
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _without_aws_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment variables without the user's AWS configuration."""
    kept = {name: value for name, value in variables.items() if not name.startswith(("AWS_", "MOTO_"))}
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    # moto's CORS headers would let any web page read responses. moto reads the variable when it is imported.
    moto = {"MOTO_DISABLE_GLOBAL_CORS": "true"}
    return {**kept, **nowhere, **moto, "AWS_EC2_METADATA_DISABLED": "true", "PYTHONUNBUFFERED": "1"}


def _request(port: int, secret: str, path: str, method: str = "GET", body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://{HOST}:{port}/_localaws/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={SECRET_HEADER: secret},
    )
    try:
        # No proxy, whatever the user's environment says: the request stays on the machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=ANSWER_SECONDS) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise ServerError(error.read().decode(errors="replace")) from error
    except (OSError, ValueError) as error:
        raise ServerError(f"the embedded AWS does not answer on port {port}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time start the server of a folder."""
    with open(os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _polls(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
