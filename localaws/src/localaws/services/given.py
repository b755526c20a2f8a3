"""Ids that a caller chooses, where AWS makes them up: for resources that templates name as existing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.ec2 import utils
from moto.kms import models
from moto.s3 import models as s3_models
from moto.utilities.id_generator import IdSourceContext, moto_id_manager

_chosen: ContextVar[str | None] = ContextVar("chosen", default=None)
_service: ContextVar[str | None] = ContextVar("service", default=None)


def create(
    service: str, operation: str, arguments: dict[str, Any], *, account: str, region: str, id: str | None = None
) -> None:
    """Call an operation of boto3's client of `service`, such as create_vpc, and give what it creates the id `id`.

    The id of an object is that of its version, and the id of a secret the six characters at the end of its ARN.
    Raises ValueError with AWS's words when AWS refuses, and for an id that the operation did not take.
    """
    from localaws.resources import client

    call = getattr(client(service, region, account), operation, None)
    if call is None:
        raise ValueError(f"{service} has no {operation}")
    if service == "ec2":
        client(
            service, region, account
        ).describe_vpcs()  # the first call makes the default VPC, which takes no chosen id
    with _choosing(id, service):
        try:
            call(**arguments)
        except (BotoCoreError, ClientError) as error:
            raise ValueError(str(error)) from error
        if id and _chosen.get():
            raise ValueError(f"{operation} of {service} makes nothing with an id such as {id}")


def instead_of(made: str) -> str:
    """The chosen id, if it has the form of the id that was made; otherwise that."""
    chosen = _chosen.get()
    if chosen and _form(chosen) == _form(made):
        _chosen.set(None)
        return chosen
    return made


def activate() -> None:
    """Let EC2, KMS, S3 and Secrets Manager take a chosen id. The services of `store` ask by themselves."""
    made_id, made_key_id = utils.random_id, models.generate_key_id
    utils.random_id = lambda *args, **kwargs: instead_of(made_id(*args, **kwargs))
    models.generate_key_id = lambda *args, **kwargs: instead_of(made_key_id(*args, **kwargs))
    if not isinstance(s3_models.random, _VersionIds):
        s3_models.random = _VersionIds(s3_models.random)
        moto_id_manager.add_id_source(_secret_suffix)


class _VersionIds:
    """The random numbers of S3, whose UUIDs are ids of versions."""

    def __init__(self, random: Any) -> None:
        self._random = random

    def uuid4(self) -> Any:
        """The chosen id of a version, or a new one."""
        return _taken_by("s3") or self._random.uuid4()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._random, name)


def _secret_suffix(asked: IdSourceContext) -> str | None:
    identifier = asked.get("resource_identifier")
    return _taken_by("secretsmanager") if identifier and identifier.service == "secretsmanager" else None


def _taken_by(service: str) -> str | None:
    """The chosen id of a call of `service`, once."""
    if _service.get() != service:
        return None
    chosen = _chosen.get()
    _chosen.set(None)
    return chosen


@contextmanager
def _choosing(id: str | None, service: str) -> Iterator[None]:
    before, caller = _chosen.set(id), _service.set(service)
    try:
        yield
    finally:
        _chosen.reset(before)
        _service.reset(caller)


def _form(id: str) -> str:
    """What ids of one kind share: the word before the hyphen; an id of a key has none."""
    word = id.partition("-")[0]
    return "" if len(word) == len("01234567") and not set(word) - set("0123456789abcdef") else word
