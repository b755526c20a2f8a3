"""Work that moto repeats at every request and that is done once in a process here, because the result is the same."""

import functools
import uuid
from typing import Any

from moto.core import responses, utils
from moto.core.base_backend import BaseBackend
from moto.core.loaders import Loader, moto_root

from localaws.resources import ModelFiles


def activate() -> None:
    """Replace moto's functions."""
    responses.method_names_from_class = functools.cache(responses.method_names_from_class)
    responses.gen_amzn_requestid_long = _request_id
    utils.create_loader = _loader
    BaseBackend.urls = property(lambda self: _urls(self.__class__))


def _request_id(headers: dict[str, str]) -> str:
    """The id of a response. moto draws 52 letters, one by one."""
    headers["x-amzn-requestid"] = str(uuid.uuid4())
    return headers["x-amzn-requestid"]


@functools.cache
def _loader() -> Loader:
    """Moto's own models, and botocore's as the clients of this process have parsed them."""
    return Loader(extra_search_paths=[moto_root], file_loader=ModelFiles())


_urls_of = BaseBackend.urls.fget


@functools.cache
def _urls(backend: type[BaseBackend]) -> dict[str, Any]:
    """Paths and their handlers. All backends of a class have the same."""
    urls: dict[str, Any] = _urls_of(object.__new__(backend))
    return urls
