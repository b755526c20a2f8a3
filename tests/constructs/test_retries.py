"""The handler of the kubectl function: which errors it repeats, and for how long."""

import importlib.util
import sys
import types

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from tests.constructs.test_kubectl import Served
from ultracluster.constructs.kubectl import HELM_RELEASE, KUBERNETES_OBJECTS, RETRIES

WEBHOOK = (
    'b\'Error from server (InternalError): error when creating "/tmp/manifest.yaml": Internal error occurred: failed '
    'calling webhook "queue-validation.kai.scheduler": failed to call webhook: no endpoints available for service\''
)
DENIED = "b'Error from server (Forbidden): admission webhook \"vclusterqueue.kb.io\" denied the request: Invalid value'"
NO_CRD = 'b\'resource mapping not found: no matches for kind "Queue" in version "scheduling.run.ai/v2"\''
SECONDS = 900


class Function:
    """The function with the CDK's handler in it, which fails with `errors` one after the other."""

    def __init__(self, *errors: str) -> None:
        self.errors, self.calls, self.passed, self.each = list(errors), 0, 0.0, 1.0
        sys.modules["index"] = types.SimpleNamespace(handler=self.cdk_handler)
        try:
            spec = importlib.util.spec_from_file_location("patient", RETRIES / "python" / "patient.py")
            self.module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.module)
        finally:
            del sys.modules["index"]
        self.module.time = types.SimpleNamespace(sleep=self.sleep)

    def cdk_handler(self, event, context):
        self.calls, self.passed = self.calls + 1, self.passed + self.each
        if self.errors:
            raise Exception(self.errors.pop(0))
        return {"Data": {"Value": "1"}}

    def sleep(self, seconds):
        self.passed += seconds

    def answer(self, kind=KUBERNETES_OBJECTS):
        context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: (SECONDS - self.passed) * 1000)
        return self.module.handler({"ResourceType": kind}, context)


@pytest.mark.parametrize("error", [WEBHOOK, NO_CRD])
def test_a_request_that_comes_too_early_is_repeated(error):
    function = Function(error, error, error)
    assert function.answer() == {"Data": {"Value": "1"}}
    assert (function.calls, function.passed) == (4, 34)


@pytest.mark.parametrize("error", [DENIED, "b'Error from server (Forbidden): jobs.batch is forbidden'"])
def test_an_object_that_is_refused_is_not_repeated(error):
    function = Function(error)
    with pytest.raises(Exception, match="Forbidden"):
        function.answer()
    assert function.calls == 1


def test_it_gives_up_before_lambda_ends_the_function():
    """A function that times out leaves CloudFormation without an answer for an hour."""
    function = Function(*[WEBHOOK] * 1000)
    function.each = 30
    with pytest.raises(Exception, match="failed calling webhook"):
        function.answer()
    assert 480 <= function.passed < SECONDS


def test_helm_keeps_the_time_for_an_attempt_with_a_roll_back():
    function = Function(*[WEBHOOK] * 1000)
    with pytest.raises(Exception, match="failed calling webhook"):
        function.answer(HELM_RELEASE)
    assert function.passed < SECONDS - 720


def test_the_kubectl_function_calls_the_handler_of_the_layer():
    template = Template.from_stack(Served())
    (function,) = [
        found["Properties"]
        for found in template.find_resources("AWS::Lambda::Function").values()
        if found["Properties"].get("Layers")
    ]
    assert function["Handler"] == "patient.handler"
    assert function["Timeout"] == SECONDS
    (layer,) = template.find_resources(
        "AWS::Lambda::LayerVersion", {"Properties": {"Description": "Repeats requests that come too early"}}
    )
    assert {"Ref": layer} in function["Layers"]


def test_compiled_files_do_not_change_the_layer():
    """Tests import the module, and the same input must give the same template."""

    def key():
        stack = cdk.Stack(cdk.App(), "stack")
        code = lambda_.Code.from_asset(str(RETRIES), exclude=["**/__pycache__"])
        lambda_.LayerVersion(stack, "Layer", code=code)
        (layer,) = Template.from_stack(stack).find_resources("AWS::Lambda::LayerVersion").values()
        return layer["Properties"]["Content"]["S3Key"]

    before = key()
    folder = RETRIES / "python" / "__pycache__"
    existed = folder.is_dir()
    folder.mkdir(exist_ok=True)
    extra = folder / "patient.cpython-399.pyc"
    extra.write_bytes(b"compiled")
    try:
        assert key() == before
    finally:
        extra.unlink()
        if not existed:
            folder.rmdir()
