"""Lambda function settings that moto drops: logging and VPC; on update also tracing, storage, key and architecture."""

from collections.abc import Callable
from typing import Any

from localaws.services.patching import patch_method
from localaws.services.references import References


def activate() -> None:
    """Patch moto's functions."""
    from moto.awslambda.models import LambdaFunction

    patch_method(LambdaFunction, "get_configuration", _get_configuration)
    patch_method(LambdaFunction, "update_configuration", _update_configuration)
    patch_method(LambdaFunction, "update_function_code", _update_function_code)
    patch_method(LambdaFunction, "__init__", _init)
    LambdaFunction.vpc_config = property(_vpc_config)


def _init(
    original: Callable[..., None], self: Any, account_id: str, spec: dict[str, Any], *args: Any, **kw: Any
) -> None:
    self.logging_config = {}
    original(self, account_id, spec, *args, **kw)
    self.logging_config = spec.get("LoggingConfig") or {}


def _get_configuration(original: Callable[..., dict[str, Any]], self: Any, *args: Any, **kw: Any) -> dict[str, Any]:
    logging = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{self.function_name}", **self.logging_config}
    return {**original(self, *args, **kw), "LoggingConfig": logging}


def _update_configuration(
    original: Callable[..., dict[str, Any]], self: Any, updates: dict[str, Any]
) -> dict[str, Any]:
    self.logging_config = updates.get("LoggingConfig", self.logging_config)
    self.tracing_config = updates.get("TracingConfig", self.tracing_config)
    self.kms_key_arn = updates.get("KMSKeyArn", self.kms_key_arn) or None
    self.ephemeral_storage = updates.get("EphemeralStorage", {"Size": self.ephemeral_storage})["Size"]
    return original(self, updates)


def _update_function_code(original: Callable[..., Any], self: Any, updates: dict[str, Any]) -> Any:
    self.architectures = updates.get("Architectures", self.architectures)
    return original(self, updates)


def _vpc_config(self: Any) -> dict[str, Any] | None:
    """The subnets and groups of a function with their VPC. moto invents the VPC."""
    config = self._vpc_config or {}
    if not config.get("SubnetIds"):
        return None
    subnet = References(self.account_id, self.region).subnet(config["SubnetIds"][0])
    return {**config, "VpcId": subnet.vpc_id}
