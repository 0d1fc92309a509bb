"""Texts of the code as Markdown."""

from __future__ import annotations

import re

START = "<!-- From the declarations, by `make reference`. -->"
END = "<!-- End of the generated part. -->"


def replaced(page: str, generated: str) -> str:
    """Return the page with `generated` between the marks `START` and `END`.

    The rest of the page is written by hand, and stays.
    """
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n{generated}\n{END}{after}"


def cell(text: str) -> str:
    """Return Markdown as one line that is safe in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Return plain text as one line of Markdown: escape `*`, `<`, `[` and emphasizing `_`.

    Code between backticks is unchanged.
    """
    parts = " ".join(text.split()).split("`")
    # An underscore inside a word is no emphasis.
    parts[::2] = [re.sub(r"([*<\[]|(?<!\w)_|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
