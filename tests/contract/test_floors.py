"""Each folder of the package imports only folders below it, and nothing below `constructs` imports the CDK."""

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import ultracluster

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "infra"
PACKAGE = SOURCES / "ultracluster"

BELOW = {
    "catalog": set(),
    "config": {"catalog"},
    "telemetry": {"catalog", "config"},
    "nodes": {"catalog", "config", "telemetry"},
    "jobs": {"catalog", "config"},
    "slurm": {"catalog", "config", "telemetry", "nodes", "jobs"},
    "kubernetes": {"catalog", "config", "telemetry", "nodes", "jobs"},
    "constructs": {"catalog", "config", "telemetry", "nodes", "jobs", "kubernetes"},
    "stacks": {"catalog", "config", "telemetry", "nodes", "jobs", "kubernetes", "constructs"},
    "cli": {"catalog", "config", "telemetry", "nodes", "jobs", "slurm", "kubernetes", "constructs", "stacks"},
}
"""Folders that the modules of each folder may import, beside their own."""

CDK = {"aws_cdk", "jsii", "constructs", "cdk_nag"}
WITHOUT_CDK = {"catalog", "config", "telemetry", "nodes", "jobs", "slurm", "kubernetes", "cli"}
HEAVY = {"aws_cdk", "jsii", "boto3", "botocore", "moto", "cfnlint", "grafana_foundation_sdk"}

GRAFANA = {PACKAGE / "telemetry/dashboards" / name for name in ("grafana.py", "grafana_fields.py")}
"""Modules that import the Grafana SDK, loaded when dashboards are written."""

LOCALAWS = ROOT / "localaws"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py")))


def imports(source: str) -> Iterator[str]:
    """Every module that is imported anywhere in a source, in functions and under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def folder_of(module: Path) -> str | None:
    parts = module.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


def forbidden_imports(name: str, source: str) -> set[str]:
    """Folders that a module of folder `name` imports without being allowed to."""
    found = {
        parts[1]
        for parts in (module.split(".") for module in imports(source))
        if parts[0] == "ultracluster" and parts[1:]
    }
    return (found & set(BELOW)) - BELOW[name] - {name}


def test_modules_import_each_other_and_not_the_public_names():
    """`from ultracluster import ...` inside the package would hide which folder a name comes from."""
    names = {f"ultracluster.{name}" for name in ultracluster.__all__}
    lazy = [module for module in MODULES if module.parent != PACKAGE]
    assert {module.name for module in lazy if names & set(imports(module.read_text("utf-8")))} == set()


def test_every_folder_has_an_entry():
    assert set(FOLDERS) == set(BELOW)


def packages(module: Path) -> set[str]:
    """Top-level packages that a module imports."""
    return {name.split(".")[0] for name in imports(module.read_text("utf-8"))}


def test_modules_import_only_folders_below():
    placed = [(folder, module) for module in MODULES if (folder := folder_of(module)) is not None]
    wrong = {module: forbidden_imports(folder, module.read_text("utf-8")) for folder, module in placed}
    assert not {module: found for module, found in wrong.items() if found}


def test_the_embedded_aws_needs_nothing_of_this_package():
    found = {module: packages(module) for module in LOCALAWS.rglob("*.py")}
    assert not [module for module, names in found.items() if names & {"ultracluster", "tests"}]
    assert not [module for module, names in found.items() if names & CDK and module.parent.name != "app"]  # its tests'


def test_only_constructs_and_stacks_import_the_cdk():
    below = [module for module in MODULES if folder_of(module) in {None, *WITHOUT_CDK}]
    assert not [module for module in below if packages(module) & CDK]


@pytest.mark.parametrize(
    "line",
    ["from ultracluster.config import loader", "import ultracluster.config.loader", "from ultracluster import config"],
)
def test_a_forbidden_import_is_found(line):
    assert forbidden_imports("catalog", f"def f():\n    {line}\n") == {"config"}


def imported(source: str, modules: Collection[str]) -> set[str]:
    """Those of `modules` that a source imports anywhere; a package when it takes a name from its `__init__`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {name.name: f"{node.module}.{name.name}" for name in node.names}
            found |= {name if name in modules else node.module for name in inside.values()}
    return found & set(modules)


def circular(sources: dict[str, str]) -> set[str]:
    """Modules of `sources`, by name, that import themselves through others."""
    reached = {name: imported(source, sources) for name, source in sources.items()}
    while any(not reached[near] <= reached[name] for name in reached for near in reached[name]):
        for name in reached:
            reached[name] = reached[name].union(*(reached[near] for near in reached[name]))
    return {name for name in reached if name in reached[name]}


def sources_of(name: str) -> dict[str, str]:
    """Sources of the modules of a folder, by module name."""
    return {
        ".".join(module.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): module.read_text("utf-8")
        for module in MODULES
        if folder_of(module) == name
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_no_folder_has_a_circular_import(name):
    assert circular(sources_of(name)) == set()


def test_localaws_has_no_circular_import():
    sources = LOCALAWS / "src"
    modules = {
        ".".join(module.relative_to(sources).with_suffix("").parts).removesuffix(".__init__"): module.read_text("utf-8")
        for module in sources.rglob("*.py")
    }
    assert circular(modules) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from ultracluster.config.second import g",
        "def f():\n    from ultracluster.config import second\n",
        "if TYPE_CHECKING:\n    import ultracluster.config.second\n",
    ],
)
def test_a_circular_import_is_found(line):
    names = [f"ultracluster.config.{name}" for name in ("first", "second", "third", "fourth")]
    sources = dict(zip(names, [line, f"import {names[2]}", f"import {names[0]}", f"import {names[0]}"], strict=True))
    assert circular(sources) == set(names[:3])


def test_a_module_that_imports_its_own_package_is_found():
    sources = {"ultracluster.config": "import ultracluster.config.first", "ultracluster.config.first": ""}
    assert circular(sources) == set()
    for line in ("from ultracluster.config import load", "import ultracluster.config"):
        assert circular(sources | {"ultracluster.config.first": line}) == set(sources)


def test_importing_the_lower_folders_loads_neither_cdk_nor_boto3():
    modules = [
        ".".join(module.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        for module in MODULES
        if folder_of(module) in ("catalog", "config", "telemetry", "nodes", "kubernetes") and module not in GRAFANA
    ]
    check = "import sys; " + "; ".join(f"import {module}" for module in modules) + "; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[0] for name in loaded}.isdisjoint(HEAVY)


def test_no_top_level_folder_hides_the_package_constructs():
    """A top-level `constructs` would hide the PyPI package that aws-cdk-lib imports."""
    assert not (ROOT / "constructs").exists()
    assert not (ROOT / "constructs.py").exists()
