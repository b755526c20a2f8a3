"""Rules about gres_settings, the records of gres.conf for a node group, and about Gres, which must match them.

The records declare the devices of a node, and `Gres` of slurm_settings how many of them jobs may request.

Source: AWS PCS User Guide, "Configuring custom GRES settings" (2026); gres.conf man page.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ultracluster.catalog import pcs
from ultracluster.config.fields import TextOrNumber
from ultracluster.config.problems import Path, Problem
from ultracluster.config.slurm_settings import SlurmSettings, value_problems

GresRecord = Mapping[str, TextOrNumber]

_GPU = "gpu"
_SHARED = ("mps", "shard")
"""Resources that share GPUs; PCS does not compare their counts."""

_KEY = "gres_settings"
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class _Entry(NamedTuple):
    """One entry of Gres: name[:type][:count]."""

    name: str
    type: str
    number: int


def gres_problems(records: Sequence[GresRecord], settings: SlurmSettings) -> Iterator[Problem]:
    """Problems of the records of a node group, and between them and `Gres` of its slurm_settings."""
    for i, record in enumerate(records):
        yield from _attributes(i, record)
        yield from _devices(i, record)
    gpus = [i for i, record in enumerate(records) if _is_gpu(record)]
    for i in gpus[1:]:
        message = f"PCS allows one GPU record for a node group, and gres_settings[{gpus[0]}] is one already"
        yield Problem("slurm-gres", (_KEY, i), message, "merge the records")
    if (gres := settings.get("Gres")) is not None:
        for entry in map(_entry, str(gres).split(",")):
            yield from _declared(entry, records)


def layout_problems(
    records: Sequence[GresRecord], settings: SlurmSettings, *, gpus: int, cores: int
) -> Iterator[Problem]:
    """Problems between records and the instance type: Slurm drains nodes that register with other devices.

    Source: AWS PCS User Guide, "Configuring hardware topology" (2026).
    """
    for i, record in enumerate(records):
        files = str(record.get("MultipleFiles", record.get("File", "")))
        listed = sum(map(_files, _patterns(files)))
        counted = files and "Count" in record and record.get("Name") not in _SHARED
        if counted and (number := _number(str(record["Count"]))) not in (None, listed):
            message = f"Count is {number}, and File lists {listed} devices"
            yield Problem("slurm-gres", (_KEY, i, "Count"), message, "remove Count")
        elif record.get("Name") == _GPU and listed > gpus and not detects_gpus(record):
            message = f"File lists {listed} GPUs and a node has {gpus}, so Slurm would drain every node"
            hint = (
                f"set File: /dev/nvidia[0-{gpus - 1}]"
                if gpus > 1
                else ("set File: /dev/nvidia0" if gpus else "remove the record")
            )
            yield Problem("slurm-gres", (_KEY, i), message, hint)
    sockets = str(settings.get("Sockets", ""))
    at: Path = ("slurm_settings", "Sockets")
    if sockets.isdecimal() and (sockets == "0" or cores % int(sockets)):
        message = f"{sockets} sockets do not divide the {cores} cores of a node evenly, so PCS refuses the node group"
        yield Problem("slurm-setting-value", at, message, "set Sockets to the number of NUMA nodes or L3 caches")
    if "l3cache_as_socket" in str(settings.get("Parameters", "")) and not sockets:
        message = "l3cache_as_socket requires Sockets: PCS does not know the number of L3 caches of an instance type"
        yield Problem(
            "slurm-setting-value", ("slurm_settings", "Parameters"), message, "set Sockets to the number of L3 caches"
        )


def _attributes(index: int, record: GresRecord) -> Iterator[Problem]:
    for name, value in record.items():
        at: Path = (_KEY, index, name)
        if name in pcs.GRES_SETTINGS:
            yield from value_problems(at, value)
        else:
            message = f"PCS does not allow {name} in a record of gres.conf; allowed: "
            message += ", ".join(sorted(pcs.GRES_SETTINGS))
            yield Problem("slurm-setting-not-allowed", at, message, f"remove {name}")


def _devices(index: int, record: GresRecord) -> Iterator[Problem]:
    """A record has Name or AutoDetect; a GPU record without AutoDetect has device files."""
    if detects_gpus(record):
        return
    if "Name" not in record:
        message = "the record has neither Name nor AutoDetect"
        yield Problem("slurm-gres", (_KEY, index), message, "set Name, or AutoDetect: nvml")
    elif record["Name"] == _GPU and not {"File", "MultipleFiles"} & record.keys():
        message = "a GPU record requires File, MultipleFiles or AutoDetect"
        yield Problem("slurm-gres", (_KEY, index), message, "set File: /dev/nvidia[0-7]")


def _declared(entry: _Entry, records: Sequence[GresRecord]) -> Iterator[Problem]:
    """PCS refuses an entry of Gres without a record, of another type, or of more devices than the records have."""
    at = ("slurm_settings", "Gres")
    named = [record for record in records if record.get("Name", _GPU if _is_gpu(record) else "") == entry.name]
    if not named:
        message = f"no record of gres_settings declares {entry.name}, so PCS refuses the node group"
        yield Problem("slurm-gres", at, message, f"add a record with Name: {entry.name} to gres_settings")
        return
    types = {str(record["Type"]) for record in named if "Type" in record}
    if entry.name == _GPU and entry.type and types and entry.type not in types:
        message = f"Gres has type {entry.type}, and the GPU record has Type {', '.join(sorted(types))}"
        yield Problem("slurm-gres", at, message, "use the same type in both")
    counts = [_count(record) for record in named]
    if entry.name not in _SHARED and None not in counts and entry.number > sum(filter(None, counts)):
        message = f"Gres has {entry.number} of {entry.name}, and gres_settings declares {sum(filter(None, counts))}"
        yield Problem("slurm-gres", at, message, f"lower the count to {sum(filter(None, counts))}")


def _entry(text: str) -> _Entry:
    """An entry of Gres. The default count is 1; `(S:0)` at the end names sockets and is ignored."""
    name, *rest = re.sub(r"\(.*\)$", "", text.strip()).split(":")
    count = _number(rest[-1]) if rest else None
    return _Entry(name, rest[0] if rest[: len(rest) - (count is not None)] else "", 1 if count is None else count)


def _count(record: GresRecord) -> int | None:
    """Number of devices that a record declares; None if Slurm detects them when the node boots."""
    if detects_gpus(record):
        return None
    if "Count" in record:
        return _number(str(record["Count"]))
    files = str(record.get("MultipleFiles", record.get("File", "")))
    return sum(map(_files, _patterns(files))) if files else 1


def _patterns(files: str) -> list[str]:
    return re.findall(r"[^,\[]+(?:\[[^\]]*\])?", files)


def _files(pattern: str) -> int:
    """Number of files that a pattern such as /dev/nvidia[0-3,6] names."""
    found = re.search(r"\[(.*)\]", pattern)
    ranges = found[1].split(",") if found else ["0"]
    ends = [each.split("-") for each in ranges]
    numeric = all(end.isdecimal() for pair in ends for end in pair)
    return sum(int(pair[-1]) - int(pair[0]) + 1 for pair in ends) if numeric else 1


def _number(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)([kmg]?)", text, re.ASCII | re.IGNORECASE)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def _is_gpu(record: GresRecord) -> bool:
    return record.get("Name") == _GPU or "AutoDetect" in record


def detects_gpus(record: GresRecord) -> bool:
    """Whether Slurm detects the GPUs of a record (AutoDetect) when a node boots."""
    return str(record.get("AutoDetect", "off")).lower() != "off"
