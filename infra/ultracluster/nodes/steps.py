"""Steps: scripts that a node runs at boot, in order, each with arguments and a frequency.

Their files are in `nodes/scripts`; some are generated.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ultracluster.nodes import health_programs, metrics_configuration

Frequency = Literal["first_boot", "every_boot"]
Stage = Literal["bootstrapped", "ready"]


@dataclass(frozen=True)
class Step:
    """One script of a node. `name` names its file `scripts/<name>.sh`, and its log on a PCS node.

    `arguments` may be tokens. A script that runs at `every_boot` must be idempotent. The stage bootstrapped is before
    the node takes jobs; ready is after slurmd has registered, when jobs may already run (PCS only). A node on which a
    `required` step fails takes no jobs; a failure of another is only reported.

    `own_text` is the text of a script that belongs to this node group alone, in place of a file. `objects` are the S3
    objects, as bucket/key, that the step downloads with the role of the node.
    """

    name: str
    arguments: tuple[str, ...] = ()
    frequency: Frequency = "first_boot"
    stage: Stage = "bootstrapped"
    required: bool = True
    own_text: str | None = field(default=None, repr=False)
    objects: tuple[str, ...] = ()

    @property
    def script(self) -> "Script":
        """The script that the step runs."""
        return script(self.name) if self.own_text is None else generated(self.own_text)


@dataclass(frozen=True)
class Script:
    """A bash script: its text, the SHA-256 of the text in hexadecimal, and its file, None if the text is generated."""

    text: str
    checksum: str
    file: Path | None


GENERATED = {
    metrics_configuration.NAME: metrics_configuration.script_text,
    health_programs.NAME: health_programs.script_text,
}
"""Functions that return the text of a script that is generated, by its name."""


def generated(text: str) -> Script:
    """A script with `text`."""
    return Script(text, hashlib.sha256(text.encode()).hexdigest(), None)


@cache
def script(name: str) -> Script:
    """The script `scripts/<name>.sh`, or a generated one. Raises FileNotFoundError."""
    if name in GENERATED:
        return generated(GENERATED[name]())
    file = Path(str(files("ultracluster.nodes").joinpath("scripts", f"{name}.sh")))
    content = file.read_bytes()
    return Script(content.decode(), hashlib.sha256(content).hexdigest(), file)
