"""Whoever catches UltraclusterError catches every error that the package defines, and the built-in bases stay."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import ultracluster
from ultracluster.errors import UltraclusterError

PACKAGE = Path(ultracluster.__path__[0])
OUTSIDE = ("localaws", "ultracluster.constructs.handlers", "ultracluster.nodes.programs")
"""The embedded AWS is a distribution of its own; handlers in Lambda functions and programs on nodes run without the
package."""


def exceptions():
    """Every exception class that a module of the package defines."""
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(OUTSIDE):
            for _, member in inspect.getmembers(import_module(name), inspect.isclass):
                if issubclass(member, BaseException) and member.__module__ == name:
                    yield member


FOUND = {error.__name__: error for error in exceptions()}


def test_there_are_exceptions():
    assert {"InvalidSettings", "JobRefused", "MissingExtra", "RefusedEnvironment", "UnknownInstanceType"} <= set(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_every_exception_has_the_one_base(name):
    assert issubclass(FOUND[name], UltraclusterError)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("InvalidSettings", ValueError),
        ("JobRefused", ValueError),
        ("MissingExtra", ImportError),
        ("UnknownInstanceType", KeyError),
        ("UnknownMetric", LookupError),
    ],
)
def test_an_exception_keeps_its_built_in_base(name, base):
    assert issubclass(FOUND[name], base)
