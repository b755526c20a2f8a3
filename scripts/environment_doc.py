"""Writes docs/environment-file.md from the models and the catalogue: `make docs`."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ultracluster.catalog import eks, lustre, nfs, pcs, ultraservers
from ultracluster.config import eks_fleet, pcs_fleet
from ultracluster.config.comparison import effects_of
from ultracluster.config.effect_words import in_docs
from ultracluster.config.schema import environment_schema
from ultracluster.config.settings import Settings

DOC = Path(__file__).parent.parent / "docs" / "environment-file.md"

HEAD = """# The environment file, key by key

For everybody who writes an environment file: every key with its meaning, allowed values and default.

One YAML file describes one environment. Unknown keys are errors, and so are settings that AWS would silently ignore.
`ultracluster validate FILE` reports all problems at once; [errors.md](errors.md) explains each code. Editors complete
and check the file if its first line names the schema, as in `environments/`:

```text
# yaml-language-server: $schema=../schema/environment.schema.json
```

Files can share keys: `extends: shared/base.yaml` reads the keys that this file does not set from another file, whose
path is relative to this one. Mappings of the two are merged at every depth. Lists and all other values of this file
replace those of the shared file, and `null` removes one. The shared file cannot extend a third. Findings name the file
that they are in:

```text
extends: shared/base.yaml
name: prod
storage: {lustre: {capacity_gib: 96000}}   # the other keys of lustre are those of base.yaml
```

The column *a change* says what a deployment of another value does. *In place* and *content* touch no node. *Replaces
nodes*: PCS replaces each node when its jobs end; EKS replaces the nodes at once, up to a third of a group at a time,
and evicts their pods. *A new node group*: the old one is deleted with what runs on it. *Refused*: a cluster, database
or file system would be replaced, or AWS refuses the change. For two files, or a file and its last commit, this prints
the effect of each change, the nodes, whether jobs are lost, and what to do first. Exit code 1 if a change is refused:

```bash
ultracluster validate --effects OLD.yaml NEW.yaml
ultracluster validate --effects environments/prod.yaml                  # since the last commit
ultracluster validate --effects v1.2:environments/prod.yaml environments/prod.yaml
```

The file follows the core schema of YAML 1.2: only `true` and `false` are booleans, and there are no dates. Put account
numbers and versions of Slurm and Kubernetes in quotes, as they are text. `make docs` generates this page from the
models in `infra/ultracluster/config`.
"""

SECTIONS = {
    "Environment": "The file",
    "Network": "network",
    "CreateNetwork": "network.create",
    "ExistingNetwork": "network.existing",
    "Storage": "storage",
    "Bucket": "storage.buckets.NAME",
    "Lifecycle": "storage.buckets.NAME.lifecycle",
    "OpenZfs": "storage.home of type openzfs",
    "Efs": "storage.home of type efs",
    "Lustre": "storage.lustre",
    "Backups": "storage.backups",
    "S3Link": "storage.lustre.links[]",
    "MoreLustre": "storage.more[] of type lustre",
    "MoreOpenZfs": "storage.more[] of type openzfs",
    "MoreEfs": "storage.more[] of type efs",
    "NodeGroup": "node_groups[]",
    "Scale": "node_groups[].count",
    "Script": "node_groups[].bootstrap[]",
    "Purchase": "node_groups[].purchase",
    "ExistingPlacementGroup": "node_groups[].placement",
    "Pcs": "control_plane of type pcs",
    "Login": "control_plane.login",
    "Containers": "control_plane.containers",
    "Queue": "control_plane.queues[]",
    "Eks": "control_plane of type eks",
    "SystemNodes": "control_plane.system_nodes",
    "CpuNodes": "control_plane.cpu_nodes",
    "DeviceStacks": "control_plane.device_stack",
    "KarpenterPools": "control_plane.karpenter",
    "KarpenterPool": "control_plane.karpenter.pools[]",
    "PoolLimits": "control_plane.karpenter.pools[].limits",
    "SlurmTeam": "control_plane.teams[] of type pcs",
    "Team": "control_plane.teams[]",
    "NodeRepair": "control_plane.node_repair",
    "Access": "access",
    "Host": "access.host",
    "Directory": "access.directory",
    "Health": "health",
    "Observability": "observability",
    "ExistingMetrics": "observability.metrics",
    "Grafana": "observability.grafana",
    "Alerts": "observability.alerts",
    "PagerDuty": "observability.alerts.pagerduty",
    "Logs": "observability.logs",
}
"""Models in the order of the file, each with its place."""


def figures(numbers: Any) -> str:
    """Numbers or names as inline code, separated by commas."""
    return ", ".join(f"`{number}`" for number in numbers)


ALLOWED = {
    ("Environment", "availability_zone"): "a zone of the region, `us-east-2b` or `us-east-1-dfw-2a`",
    ("Lustre", "capacity_gib"): f"{figures(lustre.SMALL_CAPACITIES_GIB)} and multiples of {lustre.CAPACITY_STEP_GIB}; "
    "with `efa` multiples of "
    + ", ".join(f"{step} at tier {tier}" for tier, step in sorted(lustre.EFA_STEP_GIB.items())),
    ("Lustre", "throughput_mbps_per_tib"): figures(lustre.THROUGHPUT_TIERS),
    ("Lustre", "throughput_capacity_mbps"): f"multiples of {lustre.THROUGHPUT_CAPACITY_STEP_MBPS} up to "
    f"{lustre.THROUGHPUT_CAPACITY_MAXIMUM_MBPS}",
    (
        "Lustre",
        "metadata_iops",
    ): f"`automatic`, {figures(n for n in lustre.METADATA_IOPS if n <= 12_000)}, multiples of "
    f"12000 up to {max(lustre.METADATA_IOPS)}; {figures(lustre.INTELLIGENT_TIERING_METADATA_IOPS)} for "
    "`intelligent_tiering`",
    ("Lustre", "links"): f"up to {lustre.MAXIMUM_LINKS} of [storage.lustre.links](#storagelustrelinks)",
    ("NodeGroup", "instance_type"): "an EC2 type with NVIDIA GPUs or none; see `ultracluster catalog TYPE`",
    ("Purchase", "reservation_id"): "`cr-0123456789abcdef0`",
    ("Purchase", "reservation_group_arn"): "`arn:aws:resource-groups:us-east-2:111122223333:group/name`",
    ("Purchase", "ultraserver"): figures(ultraservers),
    ("Purchase", "reservation_ids"): "list of `cr-0123456789abcdef0`",
    ("Pcs", "slurm_version"): figures(pcs.SLURM_VERSIONS),
    ("Pcs", "slurm_settings"): f"{figures(sorted(pcs.CLUSTER_SETTINGS))}; values are text or whole numbers",
    ("Pcs", "cgroup_settings"): f"{figures(sorted(pcs.CGROUP_SETTINGS))}; values are text or whole numbers",
    ("Pcs", "slurmdbd_settings"): f"{figures(sorted(pcs.SLURMDBD_SETTINGS))}; values are text or whole numbers",
    (
        "NodeGroup",
        "slurm_settings",
    ): f"{figures(sorted(pcs.NODE_GROUP_SETTINGS - {'Gres'}))}; values are text or whole numbers",
    ("Queue", "slurm_settings"): f"{figures(sorted(pcs.QUEUE_SETTINGS))}; values are text or whole numbers",
    ("Queue", "node_groups"): "list of names under `node_groups`",
    ("S3Link", "bucket"): "a name under `storage.buckets`",
    ("Eks", "kubernetes_version"): figures(eks.KUBERNETES_VERSIONS),
    ("DeviceStacks", "gpu_operator"): "list of names under `node_groups`",
    ("DeviceStacks", "device_plugin"): "list of names under `node_groups`",
    ("DeviceStacks", "dra"): "list of names under `node_groups`",
    ("Health", "spares"): "mapping of names under `node_groups` to whole numbers from 1",
    ("SlurmTeam", "node_groups"): "list of names under `node_groups`",
    ("Team", "node_groups"): "list of names under `node_groups`",
    ("Team", "gpus"): "whole number from 0, or a mapping of names under `node_groups` to such numbers",
}
ALLOWED |= {("MoreLustre", key): words for (name, key), words in ALLOWED.items() if name == "Lustre"}
ALLOWED |= {
    (name, "throughput_mbps"): f"{figures(nfs.THROUGHPUTS_MBPS['single_az_2'])}; for `single_az_1` and "
    f"`single_az_ha_1` {figures(nfs.THROUGHPUTS_MBPS['single_az_1'])}"
    for name in ("OpenZfs", "MoreOpenZfs")
}
"""Allowed values that a rule or the catalogue defines and the schema lacks."""

WITH_THE_FLEET = {"Pcs": pcs_fleet, "Eks": eks_fleet}
"""Modules of the rules between a section and the rest of the file."""


def main() -> None:
    """Rewrites the page."""
    DOC.write_text(page(), "utf-8")


def page() -> str:
    """The whole page."""
    schema = environment_schema()
    models = {model.__name__: model for model in _below(Settings)}
    definitions = {"Environment": schema, **schema["$defs"]}
    parts = [part for name in SECTIONS for part in section(name, models[name], definitions[name])]
    return HEAD + "\n" + "\n".join(parts).rstrip() + "\n"


def section(name: str, model: type[Settings], definition: dict[str, Any]) -> Iterator[str]:
    """A heading, what the section is, its keys, and the rules that hold among them."""
    yield f"## {SECTIONS[name]}\n"
    yield f"{inspect.getdoc(model)}\n"
    yield "| key | meaning | allowed | default | a change |\n| --- | --- | --- | --- | --- |"
    # of a file with `extends`, the shared file may have them
    required = {*definition.get("required", ()), *definition.get("then", {}).get("required", ())}
    for key, about in definition["properties"].items():
        meaning = about["description"].split(" Format: ")[0]
        default = "required" if key in required else _default(about)
        effects = effects_of(model, key) if key in model.model_fields else None
        change = in_docs(effects) if effects else "that of each key"
        yield f"| `{key}` | {meaning} | {ALLOWED.get((name, key)) or allowed(about)} | {default} | {change} |"
    yield ""
    if rules := list(_sourced_rules(model)):
        yield "Rules and their sources:\n"
        yield from (f"- {words}" for words in rules)
        yield ""


def allowed(about: dict[str, Any]) -> str:
    """The allowed values of the schema, in words."""
    if sides := about.get("anyOf") or about.get("oneOf"):
        return " or ".join(allowed(side) for side in sides if side != {"type": "null"})
    if "$ref" in about:
        title = SECTIONS[about["$ref"].rsplit("/", 1)[-1]]
        anchor = re.sub(r"[^a-z_ -]", "", title.lower()).replace(" ", "-")
        return f"[{title.removesuffix('[]')}](#{anchor})"
    if "enum" in about or "const" in about:
        return figures(about.get("enum") or [about["const"]])
    form = about.get("description", "").partition("Format: ")[2]
    if form:
        return str(form).rstrip(".")
    match about["type"]:
        case "array":
            entry = allowed(about["items"])
            return f"list, each entry {entry}" if entry.startswith(("a ", "an ")) else f"list of {entry}"
        case "boolean":
            return "`true`, `false`"
        case "integer":
            return _range(about)
        case "object":
            return _mapping(about)
    return "text"


def _range(about: dict[str, Any]) -> str:
    low, high = about.get("minimum", about.get("exclusiveMinimum")), about.get("maximum")
    return f"{low} to {high}" if high is not None else f"whole number from {low}"


def _mapping(about: dict[str, Any]) -> str:
    if "patternProperties" in about:
        (item,) = about["patternProperties"].values()
        return f"mapping of names to {allowed(item)}"
    return "mapping of text to text"


def _default(about: dict[str, Any]) -> str:
    value = about.get("default")
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value in (None, "", []) or isinstance(value, dict):
        return "its own defaults" if isinstance(value, dict) else "none"
    return f"`{value}`"


def _sourced_rules(model: type[Settings]) -> Iterator[str]:
    """Docstrings of the rules of a model that name a source."""
    bases = reversed(model.__mro__)
    rules = [member for base in bases for member in vars(base).values() if getattr(member, "is_rule", False)]
    if model.__name__ in WITH_THE_FLEET:
        module = WITH_THE_FLEET[model.__name__]
        rules += [each for name, each in vars(module).items() if inspect.isfunction(each) and name.startswith("_")]
    for each in rules:
        words = " ".join((inspect.getdoc(each) or "").split())
        if "Source:" in words or words.endswith(")."):
            yield words


def _below(base: type[Settings]) -> Iterator[type[Settings]]:
    for model in base.__subclasses__():
        yield model
        yield from _below(model)


if __name__ == "__main__":
    main()
