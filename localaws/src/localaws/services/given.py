"""Ids that a caller chooses, where AWS makes them up: for resources that templates name as existing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.ec2 import utils
from moto.kms import models

_chosen: ContextVar[str | None] = ContextVar("chosen", default=None)


def create(
    service: str, operation: str, arguments: dict[str, Any], *, account: str, region: str, id: str | None = None
) -> None:
    """Call an operation of boto3's client of `service`, such as create_vpc, and give what it creates the id `id`.

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
    with _choosing(id):
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
    """Let EC2 and KMS take a chosen id. The services of `store` ask by themselves."""
    made_id, made_key_id = utils.random_id, models.generate_key_id
    utils.random_id = lambda *args, **kwargs: instead_of(made_id(*args, **kwargs))
    models.generate_key_id = lambda *args, **kwargs: instead_of(made_key_id(*args, **kwargs))


@contextmanager
def _choosing(id: str | None) -> Iterator[None]:
    before = _chosen.set(id)
    try:
        yield
    finally:
        _chosen.reset(before)


def _form(id: str) -> str:
    """What ids of one kind share: the word before the hyphen; an id of a key has none."""
    word = id.partition("-")[0]
    return "" if len(word) == len("01234567") and not set(word) - set("0123456789abcdef") else word
