"""The contract of every handler with the engine."""

import pytest

from handler_parts import Stack
from localaws import handlers, schemas
from localaws.properties import ANY
from localaws.resources import HANDLERS, NotUpdatable

REGION = "us-east-2"
CUSTOM = [name for name in HANDLERS if name.startswith("Custom::")]
TYPES = sorted(
    name for name, handler in HANDLERS.items() if ANY not in handler.supported_properties and name not in CUSTOM
)


def test_handlers_are_registered() -> None:
    assert handlers.__doc__
    assert len(TYPES) > 30


@pytest.mark.parametrize("type_name", TYPES)
def test_supported_properties_exist_in_the_registry(type_name: str) -> None:
    known = schemas.schema(type_name, REGION)
    read_only = {pointer.split("/")[2] for pointer in known.get("readOnlyProperties", ()) if pointer.count("/") == 2}
    assert HANDLERS[type_name].supported_properties <= known["properties"].keys() - read_only


@pytest.mark.parametrize("type_name", TYPES)
def test_taggable_types_support_their_tag_property(type_name: str) -> None:
    name = schemas.tag_property(type_name, REGION)
    assert name is None or name in HANDLERS[type_name].supported_properties


@pytest.mark.parametrize("type_name", TYPES)
def test_required_properties_are_supported(type_name: str) -> None:
    assert set(schemas.schema(type_name, REGION).get("required", ())) <= HANDLERS[type_name].supported_properties


@pytest.mark.parametrize(("type_name", "name"), [("AWS::EC2::Subnet", "CidrBlock"), ("AWS::IAM::Role", "Path")])
def test_an_update_in_place_of_a_create_only_property_is_refused(stack: Stack, type_name: str, name: str) -> None:
    with pytest.raises(NotUpdatable, match=name):
        HANDLERS[type_name].update(stack.context(type_name), "id", {name: "old"}, {name: "new"})
