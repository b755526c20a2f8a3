"""The interface of resource handlers: their context, results and errors, and look-ups that they share."""

import functools
import secrets
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import boto3
from botocore.auth import AUTH_TYPE_MAPS, BaseSigner
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError
from botocore.loaders import JSONFileLoader, Loader
from botocore.session import Session as BotocoreSession

from localaws import accounts

Properties = dict[str, Any]

_ALPHABET = string.ascii_uppercase + string.digits


class HandlerError(Exception):
    """A resource cannot be created, updated or deleted. The message becomes the ResourceStatusReason of its event."""


class Untouched(HandlerError):
    """A handler refuses an update before it changes anything, so a rollback has nothing to undo."""


class Unfinished(HandlerError):
    """A creation fails and may leave something behind, which a rollback deletes by `physical_id`."""

    def __init__(self, message: str, physical_id: str) -> None:
        super().__init__(message)
        self.physical_id = physical_id


class NotUpdatable(Untouched):
    """A handler does not support this update in place."""

    def __init__(self, type_name: str, changed: Iterable[str]) -> None:
        super().__init__(f"{type_name} cannot be updated in place: {', '.join(sorted(changed))}")


@dataclass(frozen=True)
class Context:
    """The account, Region and stack of a resource.

    `found` holds descriptions of other resources by kind and id. The resources of one deployment share it:
    CloudFormation deletes nothing before all of them are created or updated.
    """

    account: str
    region: str
    stack_name: str
    stack_id: str
    logical_id: str
    type: str
    partition: str = "aws"
    found: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict, compare=False)

    @property
    def tags(self) -> dict[str, str]:
        """The aws:cloudformation tags. The stack's own tags are merged into the properties that a handler gets."""
        return {
            "aws:cloudformation:stack-name": self.stack_name,
            "aws:cloudformation:stack-id": self.stack_id,
            "aws:cloudformation:logical-id": self.logical_id,
        }

    def client(self, service: str, region: str | None = None) -> Any:
        """A boto3 client that the embedded AWS answers in this process, without a network."""
        return client(service, region or self.region, self.account)

    def physical_name(self, limit: int = 64) -> str:
        """A new name `Stack-LogicalId-RANDOM` of at most `limit` characters, as CloudFormation generates them."""
        suffix = "".join(secrets.choice(_ALPHABET) for _ in range(12))
        room = limit - len(suffix) - 1
        logical = self.logical_id[: max(room - len(self.stack_name) - 1, room // 2)]
        stack = self.stack_name[: room - len(logical) - 1]
        return f"{stack}-{logical}-{suffix}"

    def arn(self, service: str, resource: str) -> str:
        """The ARN of `resource` of `service` in this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


class Resource(NamedTuple):
    """A resource that a handler created or updated."""

    physical_id: str  # the value of Ref
    attributes: Mapping[str, Any]  # the values of Fn::GetAtt; nested ones have dotted names ("Endpoint.Address")


class Described(Mapping[str, Any]):
    """Attributes that the service is asked for, once, when a function needs one; most are never needed."""

    def __init__(self, describe: Callable[[], Mapping[str, Any]]) -> None:
        self._all = functools.cache(describe)

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class Handler:
    """Creates, updates and deletes one resource type through boto3. Instances are stateless.

    Properties are resolved, valid by the registry schema, and limited to `supported_properties`. The stack's tags are
    merged into the type's tag property if `supported_properties` contains it.
    """

    type: ClassVar[str]
    supported_properties: ClassVar[frozenset[str]]

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the whole resource, or raise and leave nothing behind."""
        raise NotImplementedError

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update the resource in place. Called only when the change needs no replacement."""
        raise NotUpdatable(self.type, changed(old, new))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the resource. The engine ignores not-found errors of the service."""
        raise NotImplementedError

    def replaces(self, old: Properties, new: Properties) -> bool:
        """Whether this change replaces the resource although no create-only property of the schema changed."""
        return False


HANDLERS: dict[str, Handler] = {}

HandlerClass = TypeVar("HandlerClass", bound=type[Handler])


def handler(cls: HandlerClass) -> HandlerClass:
    """Register a handler under its type."""
    if cls.type in HANDLERS:
        raise ValueError(f"two handlers for {cls.type}")
    HANDLERS[cls.type] = cls()
    return cls


def changed(old: Properties, new: Properties) -> set[str]:
    """Names of the top-level properties that differ."""
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def lower_first(value: Any) -> Any:
    """`value` with camelCase keys, as newer APIs use them, at every level. Not for maps such as tags."""
    if isinstance(value, Mapping):
        return {name[:1].lower() + name[1:]: lower_first(inner) for name, inner in value.items()}
    return [lower_first(item) for item in value] if isinstance(value, list) else value


def tag_map(tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> dict[str, str]:
    """A `Tags` property, [{Key, Value}] or {key: value}, as {key: value}."""
    if isinstance(tags, Mapping):
        return dict(tags)
    return {tag["Key"]: tag["Value"] for tag in tags or ()}


def pick(properties: Properties, *names: str) -> Properties:
    """The named properties that are set."""
    return {name: properties[name] for name in names if name in properties}


def client(service: str, region: str, account: str = accounts.DEFAULT) -> Any:
    """A boto3 client of the account with dummy credentials, which moto answers in this process.

    Raises RuntimeError when moto is not active, so that no request ever leaves the machine.
    """
    from moto.core.models import botocore_stubber

    if not botocore_stubber.enabled:
        raise RuntimeError("the embedded AWS is not active in this process")
    with _making_clients:
        return _client(service, region, account)


_making_clients = threading.Lock()  # threads may share clients, but not the session that creates them


@functools.cache
def _client(service: str, region: str, account: str) -> Any:
    config = Config(
        retries={"total_max_attempts": 1},  # waiting does not change a response of the embedded AWS
        ignore_configured_endpoint_urls=True,
        user_agent="localaws",
        signature_version=None if service == "s3" else _NamesAccount.VERSION,  # S3's says how the body is encoded
    )
    return _session(account).client(service, region_name=region, config=config)


class _NamesAccount(BaseSigner):  # type: ignore[misc]  # botocore has no types
    """Names account and Region as a signature does, without one: in this process nothing would check it."""

    VERSION = "localaws"
    REQUIRES_REGION = True

    def __init__(self, credentials: ReadOnlyCredentials, service_name: str, region_name: str) -> None:
        self._scope = f"{credentials.access_key}/20260101/{region_name}/{service_name}/aws4_request"

    def add_auth(self, request: AWSRequest) -> None:
        """Set the header that moto reads."""
        request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={self._scope}, SignedHeaders=, Signature="


AUTH_TYPE_MAPS[_NamesAccount.VERSION] = _NamesAccount


@functools.cache
def _session(account: str) -> boto3.Session:
    session = new_session()
    session.set_credentials(accounts.access_key(account), accounts.SECRET)
    return boto3.Session(botocore_session=session)


def new_session() -> BotocoreSession:
    """A session that shares parsed API models with the others of this process. Parsing one takes up to a second."""
    session = BotocoreSession()
    session.register_component("data_loader", _Models(file_loader=ModelFiles()))
    return session


class _Models(Loader):  # type: ignore[misc]  # botocore has no types
    """Botocore's models. The folders with the services are listed once a process."""

    def list_available_services(self, type_name: str) -> list[str]:
        """Services with a model of this type."""
        return _services(type_name)


class ModelFiles(JSONFileLoader):  # type: ignore[misc]
    """The files of botocore's models."""

    def load_file(self, file_path: str) -> Any:
        """The content of a file, read once. S3's clients change their model, so each has its own."""
        return super().load_file(file_path) if "/data/s3/" in file_path else _model(file_path)


@functools.cache
def _services(type_name: str) -> list[str]:
    services: list[str] = Loader().list_available_services(type_name)
    return services


@functools.cache
def _model(file_path: str) -> Any:
    return JSONFileLoader().load_file(file_path)


def is_gone(error: ClientError) -> bool:
    """Whether an error says that a resource does not exist."""
    return any(word in error.response["Error"].get("Code", "") for word in ("NotFound", "NoSuch", "DoesNotExist"))


def require(found: Callable[[], Any], message: str) -> Any:
    """The result of `found`; HandlerError with `message` when it raises a ClientError or returns nothing."""
    try:
        answer = found()
    except ClientError as error:
        raise HandlerError(f"{message} ({error.response['Error'].get('Code')})") from error
    if not answer:
        raise HandlerError(message)
    return answer
