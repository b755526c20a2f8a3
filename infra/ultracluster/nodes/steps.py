"""Steps: scripts that a node runs at boot, in order, each with arguments and a frequency.

Their files are in `nodes/scripts`; some are generated.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ultracluster.nodes import metrics_configuration

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
    """A bash script: its text, the SHA-256 of the text in hexadecimal, and its file, None if the text is generated."""

    text: str
    checksum: str
    file: Path | None


GENERATED = {metrics_configuration.NAME: metrics_configuration.script_text}
"""Functions that return the text of a script that is generated, by its name."""


@cache
def script(name: str) -> Script:
    """The script `scripts/<name>.sh`, or a generated one. Raises FileNotFoundError."""
    file = None if name in GENERATED else Path(str(files("ultracluster.nodes").joinpath("scripts", f"{name}.sh")))
    content = file.read_bytes() if file else GENERATED[name]().encode()
    return Script(content.decode(), hashlib.sha256(content).hexdigest(), file)
