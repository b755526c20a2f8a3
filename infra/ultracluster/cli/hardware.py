"""The catalogue as plain data, the output of `ultracluster catalog --json`."""

from dataclasses import asdict
from typing import Any, get_args

from ultracluster.catalog import (
    InstanceType,
    Profile,
    UltraClusterType,
    UltraServer,
    UnknownInstanceType,
    addresses,
    capacity_block_places,
    catalog,
    instance_types,
    interface_layout,
    ultraservers,
)
from ultracluster.catalog.ec2_types import family_types, nearest, read_on
from ultracluster.catalog.records import records
from ultracluster.catalog.training import default_image, minima
from ultracluster.config.group_types import type_problem

PROFILES: tuple[Profile, ...] = get_args(Profile)
_SOURCES = ("ec2_instance_types", "ec2_user_guide", "gpus", "published", "offerings", "training")


def everything() -> dict[str, Any]:
    """Every instance type and UltraServer."""
    return {
        "instance_types": [_instance_type(entry) for entry in catalog.values()],
        "ultraservers": [_ultraserver(entry) for entry in ultraservers.values()],
    }


def find(name: str) -> InstanceType | UltraServer:
    """The instance type or UltraServer called `name`. Raises UnknownInstanceType with similar names."""
    if name in ultraservers:
        return ultraservers[name]
    if name in instance_types:
        return instance_types[name]
    known = [*catalog, *ultraservers]
    raise UnknownInstanceType(name, known, UnknownInstanceType(name, known).nearest or nearest(name))


def facts_of(name: str) -> dict[str, Any]:
    """All facts about `name`, or about each type of a family. Raises UnknownInstanceType."""
    if sizes := family_types(name):
        return {"family": name, "instance_types": [facts_of(size) for size in sizes]}
    if types := gpu_types(name):
        return {"gpu": name, "instance_types": [facts_of(each) for each in types]}
    found = find(name)
    if isinstance(found, UltraServer):
        return _ultraserver(found)
    return _instance_type(found) if isinstance(found, UltraClusterType) else _described(found)


def gpu_types(gpu: str) -> tuple[str, ...]:
    """Accelerated instance types with a GPU such as `h200`; empty for an unknown one."""
    return tuple(each.name for each in catalog.values() if gpu.lower() == each.gpu.model.lower())


def sources(instance_type: UltraClusterType) -> dict[str, str]:
    """Source of a type's figures and date of reading, by data file."""
    found = {name: f"{records(name)['source']}; read {records(name)['read']}" for name in _SOURCES}
    own = records("ec2_instance_types")["instance_types"][instance_type.name]["source"]
    return found | {"ec2_instance_types": f"{own}; read {records('ec2_instance_types')['read']}"}


def _instance_type(entry: UltraClusterType) -> dict[str, Any]:
    nvlink, image = entry.nvlink, default_image(entry)
    return asdict(entry) | {
        "family": entry.family,
        "usage_classes": sorted(entry.usage_classes),
        "ultraserver_only": entry.ultraserver_only,
        "nvlink": asdict(nvlink) if nvlink else None,
        "efa": asdict(entry.efa) | {"gb_per_s": entry.efa.gb_per_s},
        "instance_store": asdict(entry.instance_store) | {"total_gb": entry.instance_store.total_gb},
        "interface_layouts": {profile: _layout(entry, profile) for profile in PROFILES},
        "capacity_blocks": list(capacity_block_places(entry.name)),
        "availability_zones": records("offerings")["availability_zones"].get(entry.name, {}),
        "minimum_software": minima(entry),
        "default_image": image.name if image else None,
        "sources": sources(entry),
    }


def _described(entry: InstanceType) -> dict[str, Any]:
    """A type outside UltraClusters: what EC2 says of it."""
    return asdict(entry) | {
        "family": entry.family,
        "usage_classes": sorted(entry.usage_classes),
        "refused": refusal(entry),
        "sources": {"ec2_types": f"{records('ec2_types')['source']}; read {read_on()}"},
    }


def refusal(entry: InstanceType) -> str | None:
    """Why node groups and pools refuse a type; None for one that they take."""
    return next((problem.message for problem in type_problem((), entry.name)), None)


def _layout(entry: InstanceType, profile: Profile) -> dict[str, Any]:
    layout = interface_layout(entry, profile)
    return {"ipv4_addresses": addresses(layout), "interfaces": [interface._asdict() for interface in layout]}


def _ultraserver(entry: UltraServer) -> dict[str, Any]:
    return {
        "name": entry.name,
        "instance_type": entry.instance_type.name,
        "instances": entry.instances,
        "gpus": entry.gpus,
        "hbm_tb": entry.hbm_tb,
        "nvlink": asdict(entry.nvlink),
        "efa_gb_per_s": entry.efa_gb_per_s,
        "sources": {name: f"{records(name)['source']}; read {records(name)['read']}" for name in ("ultraservers",)},
    }
