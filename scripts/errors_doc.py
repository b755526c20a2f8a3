"""Rewrites the reports of the refused and warned test cases and the examples of docs/errors.md: `make docs`.

Review the difference as a user would: these are the messages that users get.
"""

import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

from tests.bad_files import CODES, FAULTS, changed_lines, report_of, said_of

DOC = Path(__file__).parent.parent / "docs" / "errors.md"
_COLUMNS = 118


def main() -> None:
    """Rewrites the files."""
    for file in FAULTS.glob("*.yaml"):
        text = file.read_text("utf-8")
        cases = {name: with_report(name, case) for name, case in yaml.load(text, yaml.CSafeLoader).items()}
        file.write_text(text.splitlines()[0] + "\n" + formatted(cases), "utf-8")
    DOC.write_text(with_examples(DOC.read_text("utf-8")), "utf-8")


def with_report(name: str, case: dict[str, Any]) -> dict[str, Any]:
    """The case with today's report; cases that are named like their code have it in docs/errors.md."""
    return {**case, "report": said_of(name)} if name not in CODES else case


def formatted(cases: dict[str, dict[str, Any]]) -> str:
    """Cases as YAML, in the order of their names."""
    return "".join(f"\n{name}:\n" + "".join(map(_entry, cases[name].items())) for name in sorted(cases))


def _entry(item: tuple[str, Any]) -> str:
    key, value = item
    if key == "change":
        return "  change:\n" + "".join(f"    {path}: {_flow(new, 6)}\n" for path, new in value.items())
    if key == "report":
        return "  report: >-\n" + textwrap.indent(
            textwrap.fill(value, _COLUMNS - 4, break_long_words=False, break_on_hyphens=False) + "\n", "    "
        )
    if key in ("text", "people") and isinstance(value, str):
        block = f"  {key}: |\n" + textwrap.indent(value, "    ")
        return block if _reads(block) == {key: value} else f"  {key}: {_quoted(value)}\n"
    return f"  {key}: {_flow(value, 4)}\n"


def _reads(block: str) -> Any:
    try:
        return yaml.load(block, yaml.CSafeLoader)
    except yaml.YAMLError:
        return None


def _quoted(text: str) -> str:
    return str(yaml.dump(text, Dumper=yaml.CSafeDumper, default_style='"', allow_unicode=True, width=10**6)).rstrip(
        "\n"
    )


def _flow(value: Any, indent: int) -> str:
    options: dict[str, Any] = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True}
    text = str(yaml.dump(value, Dumper=yaml.CSafeDumper, width=_COLUMNS - 30, **options))
    return text.removesuffix("\n").removesuffix("\n...").replace("\n", "\n" + " " * indent)


def with_examples(document: str) -> str:
    """The document with the example in each section replaced by the file that is named after the code."""
    head, *sections = re.split(r"(?m)^(?=## )", document)
    return (head + "".join(map(_with_example, sections))).rstrip() + "\n"


def example(code: str) -> str:
    """The lines that trigger a code, and their report."""
    message = report_of(code).split("\n", 1)[1].rstrip()
    return f"```yaml\n{changed_lines(code)}\n```\n\n```text\n{message}\n```\n"


def _with_example(section: str) -> str:
    code = section.splitlines()[0].removeprefix("## ")
    if code not in CODES:
        return section
    words, _, _ = section.partition("```yaml")
    return f"{words.rstrip()}\n\n{example(code)}\n"


if __name__ == "__main__":
    main()
