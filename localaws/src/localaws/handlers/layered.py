"""Runs a handler that a layer of a Lambda function holds, around the code that this process stands in for."""

import io
import sys
import threading
import types
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from localaws.resources import HandlerError

_one_at_a_time = threading.Lock()  # the module `index` is the process's


@dataclass
class _Clock:
    """Time inside the function, in seconds. Waiting takes none of this process's time."""

    timeout: float
    passed: float = 0

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def left_ms(self) -> int:
        return int((self.timeout - self.passed) * 1000)


def call(function: dict[str, Any], event: dict[str, Any], code: Callable[[], Any]) -> Any:
    """Call the function's handler. `code` stands for the handler `index.handler` of the function's own code.

    A handler of another module is read from the layers, as Lambda does, and runs; it can import `index`.
    """
    module_name, _, handler_name = str(function["Handler"]).rpartition(".")
    if module_name == "index":
        return code()
    source = _source(function, module_name)
    clock = _Clock(function["Timeout"])
    index = types.ModuleType("index")
    index.__dict__["handler"] = lambda _event, _context: code()
    module = types.ModuleType(module_name)
    with _one_at_a_time:
        sys.modules["index"] = index
        try:
            exec(compile(source, f"/opt/python/{module_name}.py", "exec"), module.__dict__)  # noqa: S102
        finally:
            del sys.modules["index"]
    if "time" in module.__dict__:
        module.__dict__["time"] = clock
    context = types.SimpleNamespace(get_remaining_time_in_millis=clock.left_ms)
    return getattr(module, handler_name)(event, context)


def _source(function: dict[str, Any], module: str) -> bytes:
    """The module's source in the layers. HandlerError when Lambda would not find it."""
    from moto.awslambda.models import lambda_backends

    for layer in function.get("Layers", []):
        region, account = layer["Arn"].split(":")[3:5]
        version = lambda_backends[account][region].layers_versions_by_arn(layer["Arn"])
        try:
            with zipfile.ZipFile(io.BytesIO(version.code_bytes)) as archive:
                return archive.read(f"python/{module}.py")
        except (KeyError, zipfile.BadZipFile):
            continue
    raise HandlerError(f"Runtime.ImportModuleError: Unable to import module '{module}': No module named '{module}'")
