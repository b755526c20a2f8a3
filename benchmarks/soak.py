"""`make soak`: what the embedded AWS bears. Prints the table of docs/embedded-aws.md.

One server; the templates of localaws/tests/templates, which have nothing of an UltraCluster. Takes some minutes.
"""

import json
import os
import re
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from localaws import Server, serve, status, stop

REGION, ACCOUNT = "us-east-1", "123456789012"
TEMPLATES = sorted((Path(__file__).parents[1] / "localaws/tests/templates").glob("*.yaml"))
QUEUE = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
NAMED = ["CAPABILITY_NAMED_IAM"]
ROUNDS, STACKS, CLIENTS, CALLS, STALLED = 10, 500, 50, 20, 200
FAULTS = ("insufficient-capacity", "throttling", "quota-exceeded", "access-denied")


def main() -> None:
    """Run every check against one server and print a row for each."""
    print(f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| check | result |\n| --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "aws"
        try:
            for check in (life, many_stacks, many_clients, faults, stalled, large, killed):
                what, result = check(serve(REGION, ACCOUNT, place))
                print(f"| {what} | {result} |", flush=True)
        finally:
            stop(place)


def life(server: Server) -> tuple[str, str]:
    """Create, update without a change and delete every template, over and over."""
    cloudformation, idle = _client(server, "cloudformation"), memory(server)
    times: dict[int, list[float]] = {}
    failures = 0
    for number in range(ROUNDS):
        for file in TEMPLATES:
            request = {"StackName": file.stem, "TemplateBody": file.read_text(), "Capabilities": NAMED}
            with _timed(times.setdefault(number, [])):
                cloudformation.create_stack(**request)
                failures += _state(cloudformation, file.stem) != "CREATE_COMPLETE"
                cloudformation.delete_stack(StackName=file.stem)
                failures += _state(cloudformation, file.stem) != "DELETE_COMPLETE"
    first, last = (statistics.median(times[number]) for number in (0, ROUNDS - 1))
    total = sum(len(each) for each in times.values())
    what = f"{total} stacks of {len(TEMPLATES)} templates created and deleted in a row"
    result = f"{failures} failures; median of a stack {first:.2f} s in the first round, {last:.2f} s in the last; "
    return what, f"{result}memory {idle} MB idle, {memory(server)} MB after"


def many_stacks(server: Server) -> tuple[str, str]:
    """Many small stacks that exist at the same time."""
    cloudformation, before = _client(server, "cloudformation"), memory(server)
    times: list[float] = []
    for number in range(STACKS):
        with _timed(times):
            cloudformation.create_stack(StackName=f"many-{number}", TemplateBody=QUEUE)
    listed = sum(1 for page in cloudformation.get_paginator("describe_stacks").paginate() for _ in page["Stacks"])
    start, end = statistics.median(times[:50]) * 1000, statistics.median(times[-50:]) * 1000
    after = memory(server)
    for number in range(STACKS):
        cloudformation.delete_stack(StackName=f"many-{number}")
    result = f"{listed} listed; a stack takes {start:.0f} ms at the start and {end:.0f} ms at the end; "
    return f"{STACKS} stacks at the same time", f"{result}{(after - before) * 1024 // STACKS} KB of memory each"


def many_clients(server: Server) -> tuple[str, str]:
    """Many clients that create, read and delete stacks at once."""
    times: list[float] = []

    def work(number: int) -> int:
        cloudformation, failures = _client(server, "cloudformation"), 0
        for call in range(CALLS // 4):
            name = f"client-{number}-{call}"
            try:
                with _timed(times):
                    cloudformation.create_stack(StackName=name, TemplateBody=QUEUE)
                    failures += _state(cloudformation, name) != "CREATE_COMPLETE"
                    cloudformation.delete_stack(StackName=name)
            except (BotoCoreError, ClientError):
                failures += 1
        return failures

    start, most = time.monotonic(), 0
    with ThreadPoolExecutor(CLIENTS) as pool:
        work_done = [pool.submit(work, number) for number in range(CLIENTS)]
        while not all(each.done() for each in work_done):
            most = max(most, threads(server))
            time.sleep(0.2)
    failures = sum(each.result() for each in work_done)
    took = time.monotonic() - start
    rate = len(times) / took
    result = f"{failures} failures; {len(times)} stacks in {took:.0f} s ({rate:.0f} a second), at most {most} threads"
    return f"{CLIENTS} clients at the same time", result


def faults(server: Server) -> tuple[str, str]:
    """Each fault on a type of each template: the creation rolls back, and the next one succeeds."""
    cloudformation = _client(server, "cloudformation")
    cases = [(file, fault) for file in TEMPLATES for fault in FAULTS]
    reached = dict.fromkeys(("ROLLBACK_COMPLETE", "CREATE_COMPLETE"), 0)
    for file, fault in cases:
        request = {"StackName": "fault", "TemplateBody": file.read_text(), "Capabilities": NAMED}
        server.inject(fault, _last_type(file))
        for wanted in reached:
            cloudformation.create_stack(**request)
            reached[wanted] += _state(cloudformation, "fault") == wanted
            cloudformation.delete_stack(StackName="fault")
            _state(cloudformation, "fault")
    back, again = (f"{count} of {len(cases)}" for count in reached.values())
    result = f"{back} creations rolled back, {again} succeeded afterwards"
    return f"{len(FAULTS)} faults on a type of each template", result


def stalled(server: Server) -> tuple[str, str]:
    """Clients that connect and send half a request."""
    before = threads(server)
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(STALLED)]
    for each in sockets:
        each.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n")
    time.sleep(2)
    held = threads(server) - before
    with _timed(answered := []):
        _client(server, "sts").get_caller_identity()
    time.sleep(65)
    left = threads(server) - before
    for each in sockets:
        each.close()
    result = f"{held} threads; another client is answered in {answered[0] * 1000:.0f} ms; "
    result += f"after a minute {max(0, left)} threads"
    return f"{STALLED} clients that send half a request", result


def large(server: Server) -> tuple[str, str]:
    """An object over the limit, and one within it."""
    s3, size = _client(server, "s3"), 200 * 1024 * 1024
    s3.create_bucket(Bucket="large")
    s3.put_object(Bucket="large", Key="within", Body=bytes(size))
    peak = _status(server, "VmHWM")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"PUT /large/over HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n")
        answer = connection.recv(64).split(b"\r\n")[0].decode()
    s3.delete_object(Bucket="large", Key="within")
    return "an object of 200 MiB, and one of 1 GiB", f"stored, with at most {peak} MB of memory; refused: {answer}"


def killed(server: Server) -> tuple[str, str]:
    """The server is killed in an operation and started again."""
    busy = threading.Thread(target=_quietly, args=(lambda: _create_all(server),))
    busy.start()
    time.sleep(1)
    os.kill(server.pid, signal.SIGKILL)
    busy.join()
    alive = status(server.folder) is not None
    with _timed(took := []):
        again = serve(REGION, ACCOUNT, server.folder)
        _create_all(again)
    count = len(_client(again, "cloudformation").describe_stacks()["Stacks"])
    return (
        "the server killed (-9) in an operation",
        f"found running: {alive}; started with {count} new stacks in {took[0]:.0f} s",
    )


def _create_all(server: Server) -> None:
    for file in TEMPLATES:
        request = {"StackName": file.stem, "TemplateBody": file.read_text(), "Capabilities": NAMED}
        _client(server, "cloudformation").create_stack(**request)


def _quietly(call: Callable[[], None]) -> None:
    try:
        call()
    except (BotoCoreError, ClientError):
        return


def _client(server: Server, service: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, read_timeout=120)
    return boto3.client(service, region_name=REGION, config=config, **server.connection(ACCOUNT))


def _state(cloudformation: Any, stack: str) -> str:
    """The state that an operation ends in. A deleted stack is not there under its name."""
    while True:
        try:
            found = str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        except ClientError:
            return "DELETE_COMPLETE"
        if not found.endswith("_IN_PROGRESS"):
            return found
        time.sleep(0.05)


def _last_type(file: Path) -> str:
    """The type that a template names last."""
    return re.findall(r"Type: (AWS::\w+::\w+)", file.read_text())[-1]


def memory(server: Server) -> int:
    """Resident memory of the server in MB."""
    return _status(server, "VmRSS")


def threads(server: Server) -> int:
    """Threads of the server."""
    return len(os.listdir(f"/proc/{server.pid}/task"))


def _status(server: Server, name: str) -> int:
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(name))


@contextmanager
def _timed(times: list[float]) -> Iterator[None]:
    start = time.monotonic()
    yield
    times.append(time.monotonic() - start)


if __name__ == "__main__":
    main()
