"""cfn-lint over templates, with its rules and schemas loaded once a process, and once for each distinct template."""

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from itertools import chain
from typing import Any

from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.runner import Runner

from tests.synthesis import KEPT

IGNORED = {
    "E3628": "its list of instance types lacks P5e, P6 and P6e in regions that sell them; the catalogue checks types",
}


@cache
def _runner(region: str) -> Runner:
    return Runner(ConfigMixIn(**ManualArgs(regions=[region], ignore_checks=list(IGNORED))))


def findings(templates: dict[str, dict[str, Any]], region: str) -> list[str]:
    """Rule, message and place of everything that cfn-lint finds in the stacks of an environment."""
    return list(chain.from_iterable(_findings(template, region) for template in templates.values()))


def _findings(template: dict[str, Any], region: str) -> list[str]:
    text = json.dumps(template)
    key = hashlib.sha256(f"{version('cfn-lint')} {region} {sorted(IGNORED)} {text}".encode()).hexdigest()
    kept = KEPT / "cfn-lint" / key
    if kept.exists():
        found: list[str] = json.loads(kept.read_text())
        return found
    content, errors = decode_str(text)
    matches = errors or _runner(region).validate_template(content)
    found = [f"{match.rule.id} {match.message} {match.path_string}" for match in matches]
    kept.parent.mkdir(parents=True, exist_ok=True)
    written = kept.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(found))
    written.replace(kept)
    return found
