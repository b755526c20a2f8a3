"""Custom resources backed by inline Lambda functions: how they are deployed."""

import pytest

from ultracluster.constructs import functions
from ultracluster.constructs.functions import INLINE_LIMIT, InlineResource, inline_code
from ultracluster.constructs.keys import DataKey

HANDLERS = ("default_security_group", "root_squash")


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        InlineResource(
            stack,
            "Squash",
            handler="root_squash",
            resource_type="Custom::LustreRootSquash",
            properties={"FileSystemId": "fs-1", "RootSquash": "65534:65534"},
            statements=[{"Action": "fsx:UpdateFileSystem", "Resource": "arn"}],
            key=DataKey(stack, "Key", description="Logs"),
            timeout_seconds=600,
        )

    return synth(fill)


def test_the_template_contains_the_code_without_assets(template):
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert function["Properties"]["Code"] == {"ZipFile": inline_code("root_squash")}
    assert function["Properties"]["Runtime"] == "python3.14"


def test_the_function_is_created_after_its_policy(template):
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert function["DependsOn"] == list(template.find_resources("AWS::IAM::ManagedPolicy"))


def test_cloudformation_waits_a_minute_longer_than_the_function_may_run(template):
    (resource,) = template.find_resources("Custom::LustreRootSquash").values()
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert int(resource["Properties"]["ServiceTimeout"]) == function["Properties"]["Timeout"] + 60


def test_code_that_is_too_long_for_a_template_is_refused(monkeypatch):
    monkeypatch.setattr(functions, "INLINE_LIMIT", 100)
    with pytest.raises(ValueError, match=r"root_squash has \d+ characters of code; a template carries at most 100"):
        inline_code("root_squash")


@pytest.mark.parametrize("handler", HANDLERS)
def test_every_handler_fits_into_a_template_and_imports_nothing_of_ours(handler):
    code = inline_code(handler)
    assert len(code) <= INLINE_LIMIT
    assert "ultracluster" not in code
