"""Replace the generated part of a page. The text outside the two marks is written by hand."""

from __future__ import annotations

START = "<!-- From the declarations, by `make reference`. -->"
END = "<!-- End of the generated part. -->"


def replaced(page: str, generated: str) -> str:
    """Return the page with other text between the marks."""
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n{generated}\n{END}{after}"


def cell(text: str) -> str:
    """Return the text as one line that is safe in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
