"""Custom resources: Python of a Lambda function, inline or in S3, run in this process against the embedded AWS."""

import contextlib
import ctypes
import io
import os
import sys
import tempfile
import threading
import time
import types
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3

from localaws import accounts
from localaws.handlers.common import function_failed
from localaws.outbound import RESPONSES, urlopen_in
from localaws.resources import Context, Handler, HandlerError, Properties, Resource, Unfinished, handler, new_session
from localaws.services.calls import Session

LEAST_SECONDS = 10.0
"""Time that every function gets, because this machine may be slower than Lambda."""

_one_at_a_time = threading.Lock()  # functions change this process's environment variables


@dataclass
class Answer:
    """The response that a function sent through `cfnresponse`."""

    status: str | None = None
    reason: str | None = None
    physical_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)

    def take(self, response: dict[str, Any]) -> None:
        """The response that a function sends without `cfnresponse` (CloudFormation User Guide, response objects)."""
        self.status, self.reason = response.get("Status"), response.get("Reason")
        self.physical_id = response.get("PhysicalResourceId")
        self.data = dict(response.get("Data") or {})


@handler
class CustomResource(Handler):
    """AWS::CloudFormation::CustomResource and every Custom::* type."""

    type = "AWS::CloudFormation::CustomResource"
    supported_properties = frozenset({"*"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Send Create. After a failure, CloudFormation sends Delete, with an id of its own where the function has none.

        Source: aws-cdk, custom-resources/lib/provider-framework/runtime/cfn-response.ts, which ignores such a Delete.
        """
        return _send(context, "Create", properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Send Update. Another physical id in the response is a replacement."""
        return _send(context, "Update", new, PhysicalResourceId=physical_id, OldResourceProperties=old)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Send Delete."""
        _send(context, "Delete", properties, PhysicalResourceId=physical_id)


def _send(context: Context, request: str, properties: Properties, **more: Any) -> Resource:
    function = _function(context, properties["ServiceToken"])
    event = {
        "RequestType": request,
        "ResponseURL": f"https://{RESPONSES}/",
        "StackId": context.stack_id,
        "RequestId": str(uuid.uuid4()),
        "ResourceType": context.type,
        "LogicalResourceId": context.logical_id,
        "ResourceProperties": properties,
        **more,
    }
    seconds = min(float(properties.get("ServiceTimeout", function.timeout)), function.timeout)
    answer, physical_id = Answer(), more.get("PhysicalResourceId") or f"{context.logical_id}-{uuid.uuid4()}"
    try:
        _run(function, event, max(seconds, LEAST_SECONDS), answer)
        if answer.status != "SUCCESS":
            raise function_failed(answer.reason)
    except HandlerError as error:
        if request == "Create":
            raise Unfinished(str(error), answer.physical_id or physical_id) from error
        raise
    return Resource(answer.physical_id or physical_id, answer.data)


def _function(context: Context, token: str) -> Any:
    """Moto's record of the function in the service token. HandlerError unless it is Python."""
    from moto.awslambda.models import lambda_backends

    where, _, name = token.partition(":function:")
    if not name or not where.startswith("arn:"):
        raise HandlerError(f"the embedded AWS runs custom resources only in Lambda functions, not in {token}")
    region, account = where.split(":")[3:5]
    found = context.client("lambda", region).get_function(FunctionName=name)["Configuration"]
    function = lambda_backends[account][region].get_function(name)
    if not str(found.get("Runtime")).startswith("python"):
        raise HandlerError(f"the embedded AWS runs only Python for custom resources; {name} has other code")
    return function


def _run(function: Any, event: dict[str, Any], seconds: float, answer: Answer) -> None:
    """Run the function's handler, which fills `answer`.

    HandlerError when it raises, sends no response, or takes longer than `seconds`.
    """
    inline = "S3Bucket" not in function.code
    module_name, _, handler_name = str(function.handler).rpartition(".")
    if inline and module_name != "index":
        raise HandlerError(f"inline code is the module `index`, so the handler cannot be {function.handler}")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(function.code_bytes)) as archive:
            archive.extractall(folder)
        file = Path(folder, f"{module_name}.py")
        if not file.is_file():
            raise HandlerError(f"Unable to import module '{module_name}': no module named '{module_name}'")
        with _one_at_a_time, _environment(function, answer, inline=inline):
            module = types.ModuleType(module_name)
            module.__file__ = str(file)
            end = time.monotonic() + seconds

            def call() -> None:
                shown = f"{function.function_name}/{file.name}"
                exec(compile(file.read_bytes(), shown, "exec"), module.__dict__)  # noqa: S102
                getattr(module, handler_name)(event, _lambda_context(function, end))

            try:
                _within(seconds, call)
            except TimeoutError as error:
                # CloudFormation learns nothing of this, and fails the resource when its own hour has passed
                raise HandlerError(
                    f"Task timed out after {seconds:.2f} seconds: custom resource function "
                    f"{function.function_name} sent no response"
                ) from error
            except Exception as error:  # any exception of the function fails the resource
                raise HandlerError(f"custom resource function {function.function_name} raised {error!r}") from error
    if answer.status is None:
        raise HandlerError(f"custom resource function {function.function_name} ended without a response")


def _within(seconds: float, call: Callable[[], None]) -> None:
    """Run `call` in a thread of its own, whose exceptions are raised here.

    TimeoutError when it has not ended after `seconds`. It is stopped at its next statement in Python.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - sys.exit() of the function too
            raised.append(error)

    thread = threading.Thread(target=run, name="function", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        raise TimeoutError
    if raised and not isinstance(raised[0], Exception):
        raise RuntimeError(f"{raised[0]!r}") from raised[0]
    if raised:
        raise raised[0]


@contextlib.contextmanager
def _environment(function: Any, answer: Answer, *, inline: bool) -> Iterator[None]:
    """Set the function's variables, Region and response module, and hide settings that would redirect boto3."""
    variables = {
        **function.environment_vars,
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
        "AWS_ACCESS_KEY_ID": accounts.access_key(function.account_id),
        "AWS_SESSION_TOKEN": Session(str(function.role), function.function_name).token,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    }
    # No patch.dict for sys.modules: it would also unload the services that moto imports while the function runs.
    # AWS adds the module to inline code only.
    added = {"cfnresponse": _response_module(answer)} if inline else {}
    sys.modules.update(added)
    urlopen = urlopen_in(function.account_id, answer.take)
    try:
        with (
            patch.dict(os.environ, variables),
            patch.object(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=new_session())),
            patch.object(urllib.request, "urlopen", urlopen),
        ):
            yield
    finally:
        for name in added:
            del sys.modules[name]


def _response_module(answer: Answer) -> types.ModuleType:
    """The `cfnresponse` module that AWS provides for inline code. The response stays in this process."""

    def send(
        event: dict[str, Any],  # noqa: ARG001
        context: Any,
        responseStatus: str,  # noqa: N803 - AWS's names, because callers may pass keywords
        responseData: dict[str, Any] | None,  # noqa: N803
        physicalResourceId: str | None = None,  # noqa: N803
        noEcho: bool = False,  # noqa: ARG001, FBT001, FBT002, N803
        reason: str | None = None,
    ) -> None:
        answer.status = responseStatus
        answer.reason = reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}"
        # as AWS's module does: a function that names no id replaces its resource with each update
        answer.physical_id = physicalResourceId or context.log_stream_name
        answer.data = dict(responseData or {})

    module = types.ModuleType("cfnresponse")
    module.__dict__.update(SUCCESS="SUCCESS", FAILED="FAILED", send=send)
    return module


def _lambda_context(function: Any, end: float) -> types.SimpleNamespace:
    """`end`: the monotonic time at which the function is stopped."""
    return types.SimpleNamespace(
        function_name=function.function_name,
        invoked_function_arn=function.function_arn,
        memory_limit_in_mb=function.memory_size,
        aws_request_id=str(uuid.uuid4()),
        log_group_name=function.logs_group_name,
        log_stream_name=f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}",
        get_remaining_time_in_millis=lambda: max(0, int((end - time.monotonic()) * 1000)),
    )
