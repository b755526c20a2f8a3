"""Text layout of one problem: place, message, hint, and the code on the right."""

from textwrap import wrap

WIDTH = 108


def entry(code: str, place: str, message: str, hint: str, severity: str, *, width: int = WIDTH) -> str:
    """The lines of one problem, at most `width` columns. `place` is empty for a problem of the whole file or model."""
    hint = hint[0].upper() + hint[1:]
    stop = "" if hint.endswith(("?", "...")) else "."
    text = printable(f"{severity}: {place}{': ' if place else ''}{message}.  {hint}{stop}")
    lines = wrap(
        text, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    label = f"[{code}]"
    if len(lines[-1]) + 2 + len(label) <= width:
        lines[-1] += label.rjust(width - len(lines[-1]))
    else:
        lines.append(label.rjust(width))
    return "\n".join(lines)


def printable(text: str) -> str:
    """`text` with control characters escaped, so that a terminal does not execute them."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
