"""Steps: the scripts of `nodes/scripts` that a node runs at boot, in order, each with arguments and a frequency."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

Frequency = Literal["first_boot", "every_boot"]
Stage = Literal["bootstrapped", "ready"]


@dataclass(frozen=True)
class Step:
    """One script of a node. `name` names its file `scripts/<name>.sh`, and its log on a PCS node.

    `arguments` may be tokens. A script that runs at `every_boot` must be idempotent. The stage bootstrapped is before
    the node takes jobs; ready is after slurmd has registered, when jobs may already run (PCS only). A node on which a
    `required` step fails takes no jobs; a failure of another is only reported.
    """

    name: str
    arguments: tuple[str, ...] = ()
    frequency: Frequency = "first_boot"
    stage: Stage = "bootstrapped"
    required: bool = True

    @property
    def script(self) -> "Script":
        """The script that the step runs."""
        return script(self.name)


@dataclass(frozen=True)
class Script:
    """A bash script: its file in this package, its text, and the SHA-256 of the text in hexadecimal."""

    file: Path
    text: str
    checksum: str


@cache
def script(name: str) -> Script:
    """The script `scripts/<name>.sh`. Raises FileNotFoundError."""
    file = Path(str(files("ultracluster.nodes").joinpath("scripts", f"{name}.sh")))
    content = file.read_bytes()
    return Script(file, content.decode(), hashlib.sha256(content).hexdigest())
