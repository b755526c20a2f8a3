"""Rewrites the expected reports of the refused test files and the examples of docs/errors.md: `make docs`.

Review the difference as a user would: these are the messages that users get.
"""

import re
from pathlib import Path

from tests.bad_files import CODES, FOLDER, NAMES, changed_lines, report_of

DOC = Path(__file__).parent.parent / "docs" / "errors.md"


def main() -> None:
    """Rewrites the files that differ."""
    for name in NAMES:
        (FOLDER / "bad" / f"{name}.txt").write_text(report_of(name), "utf-8")
    DOC.write_text(with_examples(DOC.read_text("utf-8")), "utf-8")


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
