"""Draws docs/architecture.svg and docs/architecture-eks.svg from synthesised templates: `make docs`.

Every figure in a picture is read from the templates. A resource type that they no longer contain raises a KeyError.
"""

from collections.abc import Callable
from pathlib import Path

from scripts.architecture import kubernetes, slurm
from tests.synthesis import ROOT

PICTURES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "architecture.svg": slurm.picture,
    ROOT / "docs" / "architecture-eks.svg": kubernetes.picture,
}

if __name__ == "__main__":
    for file, picture in PICTURES.items():
        file.write_text(picture(), "utf-8")
