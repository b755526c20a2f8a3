"""Base of the services that are added to moto: registration, input validation by botocore's model, errors."""

import base64
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from moto import backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.core.utils import get_service_model


class Refusal(ServiceException):  # type: ignore[misc]  # moto is untyped
    """An error response: a code of the service's model, a message, and the members of that error in the model."""

    def __init__(self, code: str, message: str, **members: Any) -> None:
        super().__init__(code, message)
        self.__dict__.update(members)


def invalid(field: str, message: str) -> Refusal:
    """A ValidationException about one field."""
    return Refusal("ValidationException", f"{field}: {message}", field=field, about=message)


class CheckedInput(BaseResponse):  # type: ignore[misc]
    """A moto response class whose `params` are parsed and validated by botocore's model.

    The client checks types and required members. The service checks enumerations, patterns and ranges.
    """

    invalid: ClassVar[str] = "ValidationException"

    def setup_class(self, *args: Any, **kwargs: Any) -> None:
        """Let moto parse the request by the model. The action is looked up first: it defines the URI parameters."""
        self.automated_parameter_parsing = True
        super().setup_class(*args, **kwargs)

    def call_action(self) -> Any:
        """Run the action, or return AWS's validation error."""
        shape = get_service_model(self.boto3_service_name).operation_model(self._get_action()).input_shape
        found = next(problems(shape, self.params, ""), None)
        if found is None:
            return super().call_action()
        refusal = Refusal(self.invalid, f"1 validation error detected: {found}", reason="fieldValidationFailed")
        status, headers, body = self.serialized(ActionResult(refusal))
        return status, *self._enrich_response({**headers, "status": status}, body)

    def page(self, name: str, items: list[Any]) -> ActionResult:
        """The requested page of a list. The token is the start of the next page."""
        names = get_service_model(self.boto3_service_name).operation_model(self._get_action()).input_shape.members
        token_name, size_name = ("NextToken", "MaxResults") if "NextToken" in names else ("nextToken", "maxResults")
        start = int(base64.b64decode(self.params.get(token_name) or b"MA=="))
        end = start + (self.params.get(size_name) or 100)
        token = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
        return ActionResult({name: items[start:end], token_name: token})


class TagActions(CheckedInput):
    """The actions on tags, alike in the services that tag by ARN."""

    def list_tags_for_resource(self) -> ActionResult:
        """The tags of a resource."""
        return ActionResult({"tags": self.requested_tags()})

    def tag_resource(self) -> ActionResult:
        """Add or overwrite tags."""
        self.requested_tags().update(self.params["tags"])
        return EmptyResult()

    def untag_resource(self) -> ActionResult:
        """Remove tags; unknown keys are fine."""
        for key in self.params["tagKeys"]:
            self.requested_tags().pop(key, None)
        return EmptyResult()

    def requested_tags(self) -> dict[str, str]:
        """The tags of the resource that the request names; Refusal when it does not exist."""
        raise NotImplementedError


class Backend(BaseBackend):  # type: ignore[misc]
    """The state of an added service in one Region. `urls_of` maps paths to response classes."""

    urls_of: ClassVar[Any]

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.tags: dict[str, dict[str, str]] = {}

    @property
    def _url_module(self) -> Any:
        return self.urls_of

    def arn(self, service: str, resource: str) -> str:
        """The ARN of `resource` in this account and Region."""
        return f"arn:{self.partition}:{service}:{self.region_name}:{self.account_id}:{resource}"


def add_service(name: str, backend: type[Backend], responses: type[BaseResponse], paths: tuple[str, ...]) -> Any:
    """Add a service to moto, in process and in its server. Returns the backends by account and Region.

    boto3 has no list of Regions for some of the services, so EC2's list is used. The registry's schemas decide in which
    Regions a resource type exists.
    """
    backend.urls_of = types.SimpleNamespace(
        url_bases=[rf"https?://{name}\.(.+)\.amazonaws\.com"],
        url_paths={f"{{0}}{path}$": responses.dispatch for path in paths},
    )
    module = types.ModuleType(f"moto.{name}")
    backends = BackendDict(backend, "ec2")
    setattr(module, f"{name}_backends", backends)
    sys.modules[module.__name__] = module
    pattern = re.compile(backend.urls_of.url_bases[0])
    backend_index.backend_url_patterns.insert(0, (name, pattern))
    return backends


def problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Violations of the botocore shape by `value`: enumerations, patterns, lengths and ranges, in AWS's words."""
    if value is None or shape is None:
        return
    limits: Mapping[str, Any] = shape.metadata
    where = f"Value '{value}' at '{path}' failed to satisfy constraint: Member must"
    match shape.type_name:
        case "structure":
            for name, member in shape.members.items():
                yield from problems(member, value.get(name), f"{path}.{name}" if path else name)
        case "list":
            yield from _size(len(value), limits, f"{where} have length")
            for index, item in enumerate(value):
                yield from problems(shape.member, item, f"{path}.{index + 1}.member")
        case "map":
            for name, item in value.items():
                yield from problems(shape.key, name, f"{path}.key")
                yield from problems(shape.value, item, f"{path}.{name}.value")
        case "string":
            if (allowed := limits.get("enum")) and value not in allowed:
                yield f"{where} satisfy enum value set: [{', '.join(allowed)}]"
            yield from _size(len(value), limits, f"{where} have length")
            pattern = limits.get("pattern", "")
            # Python's re has no \p classes; AWS uses them only for tags.
            if pattern and r"\p" not in pattern and not re.fullmatch(pattern, value):
                yield f"{where} satisfy regular expression pattern: {pattern}"
        case "integer" | "long":
            yield from _size(value, limits, f"{where} have value")


def _size(size: int, limits: Mapping[str, Any], where: str) -> Iterator[str]:
    if "min" in limits and size < limits["min"]:
        yield f"{where} greater than or equal to {limits['min']}"
    if "max" in limits and size > limits["max"]:
        yield f"{where} less than or equal to {limits['max']}"
