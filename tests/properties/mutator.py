"""Structure-aware mutations of environment files: each changes a few values to others that the schema could allow.

Deterministic: the same seed gives the same files. Values come from the JSON Schema (every key, alternative and limit),
from what shipped files have at the same key, and from a list of texts that AWS refuses somewhere.
"""

import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ultracluster.catalog import catalog
from ultracluster.config.schema import environment_schema
from ultracluster.config.source import parse

Data = Any
Schema = dict[str, Any]
Place = tuple[str, ...]
"""Keys from the top of the file to a value; items of lists have no key of their own."""

SCHEMA: Schema = environment_schema()
OUTSIDE = [0, 1, -1, 2, 7, 63, 64, 65, 10**6, 2**31, "", "a", "x" * 64, "auto", "none", True, None, [], {}, 1.5]
"""Values of any kind, for any place."""
TEXTS = {
    "name": ["a", "train", "a-", "a--b", "default", "system", "login", "abcdefghijklmno", "kube-system", "aws", "x1"],
    "path": ["/", "/a", "/a/b", "/datasets", "/datasets/raw", "/a//b", "/A_b.c", "/checkpoints/"],
    "prefix": ["", "a", "a/b", "raw/", "//", "datasets"],
    "existing": ["my-bucket", "my.bucket", "xn--bucket", "bucket-s3alias", "192.168.1.1", "a..b", "aws-grafana", "g-1"],
    "mount_path": ["/fsx", "/a", "/scratch", "/mnt/data", "/data/", "/home", "/opt/data", "/lustre"],
    "cidr": ["10.0.0.0/16", "10.0.0.0/24", "172.31.0.0/16", "192.168.0.0/20", "100.64.0.0/16", "10.0.0.0/8"],
    "availability_zone": ["us-east-2a", "us-east-2c", "us-west-2b", "us-east-1-dfw-2a", "eu-central-1a"],
    "region": ["us-east-1", "us-west-2", "eu-west-1", "cn-north-1", "us-gov-west-1", "ap-south-1", "eu-south-2"],
    "instance_type": [*catalog, "m7i.large", "m7g.xlarge", "t3.micro", "g5.xlarge", "c7gn.metal", "p4d.24xlarge"],
    "image": ["auto", "ami-0123456789abcdef0", "ami-01234567", "ssm:/a", "ssm:/aws/service/x", "ssm://a", "ssm:/a b"],
    "slurm_version": ["24.05", "24.11", "25.05", "25.11", "26.05"],
    "kubernetes_version": ["1.33", "1.34", "1.35", "1.36", "1.37"],
    "reservation_id": ["cr-0123456789abcdef0", "cr-0fedcba9876543210"],
}
"""Texts for keys, by the last key of their place."""


def mutated_files(sources: list[str], *, seed: int, count: int) -> Iterator[str]:
    """`count` different files, each one of `sources` with one to three changes, as YAML text."""
    chance, seen = random.Random(seed), set[str]()  # noqa: S311 - not for secrets
    originals = [parse(text).data for text in sources]
    harvest = _harvest(originals)
    while len(seen) < count:
        data = deepcopy(chance.choice(originals))
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
            _change(data, chance, harvest, originals)
        text = json.dumps(data, indent=1)
        if text not in seen:
            seen.add(text)
            yield text


def _harvest(originals: list[Data]) -> dict[Place, list[Data]]:
    """What the originals have at each place."""
    found: dict[Place, list[Data]] = {}
    for data in originals:
        for place, value, _, _ in _values(data):
            if value not in found.setdefault(place, []):
                found[place].append(value)
    return found


def _values(
    value: Data, place: Place = (), holder: Data = None, key: Any = None
) -> Iterator[tuple[Place, Any, Any, Any]]:
    """Every value in `value`, with its place, and the mapping or list that holds it under a key or index."""
    if holder is not None:
        yield place, value, holder, key
    if isinstance(value, dict):
        for name, entry in list(value.items()):
            yield from _values(entry, (*place, name), value, name)
    if isinstance(value, list):
        for index, entry in enumerate(list(value)):
            yield from _values(entry, (*place, "*"), value, index)


_HOW = ("value",) * 6 + ("near",) * 3 + ("add",) * 4 + ("drop", "copy", "copy", "graft", "wrong")


def _change(data: Data, chance: random.Random, harvest: dict[Place, list[Data]], originals: list[Data]) -> None:
    place, value, holder, key = chance.choice(list(_values(data)))
    match chance.choice(_HOW):
        case "value":
            holder[key] = _plausible(_schema_at(place), place, chance, harvest)
        case "near":
            holder[key] = _near(value, chance, harvest.get(place, []))
        case "add" if isinstance(value, dict):
            name = chance.choice([*_keys(_schema_at(place), value), "new"])
            value[name] = _plausible(_schema_at((*place, name)), (*place, name), chance, harvest)
        case "drop":
            del holder[key]
        case "copy" if isinstance(holder, list):
            holder.append(_renamed(deepcopy(value), chance))
        case "graft":
            section = chance.choice(sorted(SCHEMA["properties"]))
            donor = chance.choice(originals)
            if section in donor:
                data[section] = deepcopy(donor[section])
        case _:
            holder[key] = deepcopy(chance.choice(OUTSIDE))


def _renamed(value: Data, chance: random.Random) -> Data:
    """A copy of an item with a name of its own, in most cases."""
    if isinstance(value, dict) and "name" in value and chance.random() < 0.8:
        value["name"] = f"{str(value['name'])[:12]}{chance.randrange(10)}"
    return value


def _near(value: Data, chance: random.Random, others: list[Data]) -> Data:
    """A value of the same kind, close to `value`."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice([value + 1, value - 1, value * 2, value // 2, value + 1200, value * 10, -value])
    if isinstance(value, str):
        cut = chance.randrange(len(value) + 1)
        changed = [value.upper(), value + "x", value[:cut], f"{value} ", value + value, value[:cut] + "-" + value[cut:]]
        return chance.choice([*changed, *(other for other in others if isinstance(other, str))])
    if isinstance(value, list):
        return [*value, *value] if chance.random() < 0.3 else value[: chance.randrange(len(value) + 1)]
    return deepcopy(chance.choice(others)) if others else value


def _plausible(schema: Schema, place: Place, chance: random.Random, harvest: dict[Place, list[Data]]) -> Data:
    """A value that the schema could allow at a place."""
    known = harvest.get(place, [])
    if known and chance.random() < 0.35:
        return deepcopy(chance.choice(known))
    if place and place[-1] in TEXTS and chance.random() < 0.7:
        return chance.choice(TEXTS[place[-1]])
    schema = _resolved(schema, chance)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 2000)
            return chance.choice(
                [low, high, low - 1, high + 1, chance.randint(low, high), chance.randint(low, low + 16)]
            )
        case "array":
            items = schema.get("items", {})
            return [_plausible(items, (*place, "*"), chance, harvest) for _ in range(chance.randrange(4))]
        case "object":
            return _object(schema, place, chance, harvest)
        case "string":
            return _text(schema, place, chance)
    return deepcopy(chance.choice(OUTSIDE))


def _object(schema: Schema, place: Place, chance: random.Random, harvest: dict[Place, list[Data]]) -> Data:
    properties = schema.get("properties", {})
    if not properties:
        keys = chance.sample(["team", "Name", "a b", "a/b", "datasets", "x" * 20, "Prolog", "KillWait"], 2)
        entry = schema.get("additionalProperties") or {}
        return {key: _plausible(entry, (*place, key), chance, harvest) for key in keys}
    required = schema.get("required", [])
    chosen = [key for key in properties if key in required or chance.random() < 0.3]
    return {key: _plausible(properties[key], (*place, key), chance, harvest) for key in chosen}


_EXAMPLE = re.compile(r"such as (\S+?)[.,]?$")


def _text(schema: Schema, place: Place, chance: random.Random) -> str:
    example = _EXAMPLE.search(schema.get("description", "").split("Format: ")[-1])
    texts = [*(TEXTS.get(place[-1], []) if place else []), *([example[1]] if example else []), "train", "a", "A b", "é"]
    return chance.choice(texts)


def _keys(schema: Schema, value: dict[str, Any]) -> list[str]:
    """Keys that a mapping could have and does not."""
    found = [*schema.get("properties", {})]
    for alternative in _alternatives(schema):
        found += alternative.get("properties", {})
    return sorted(set(found) - set(value))


def _alternatives(schema: Schema) -> list[Schema]:
    if "$ref" in schema:
        return [SCHEMA["$defs"][schema["$ref"].split("/")[-1]]]
    return [inner for key in ("oneOf", "anyOf", "allOf") for each in schema.get(key, []) for inner in _flat(each)]


def _flat(schema: Schema) -> list[Schema]:
    return [deeper for inner in _alternatives(schema) for deeper in _flat(inner)] or [schema]


def _resolved(schema: Schema, chance: random.Random) -> Schema:
    return chance.choice(_flat(schema))


def _schema_at(place: Place) -> Schema:
    """The schema of a place: with alternatives, the first that has the keys."""
    level: list[Schema] = [SCHEMA]
    for key in place:
        flat = [inner for schema in level for inner in _flat(schema)]
        if key == "*":
            level = [schema["items"] for schema in flat if isinstance(schema.get("items"), dict)]
            continue
        level = [schema["properties"][key] for schema in flat if key in schema.get("properties", {})] or [
            schema["additionalProperties"] for schema in flat if isinstance(schema.get("additionalProperties"), dict)
        ]
    return {"anyOf": level} if level else {}
