"""Records of triggers, such as schedules, as text for admin pages."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from agents.hidden_text import visible
from agents.models import Run


def run_link(run_id: str | None) -> SafeString | str:
    """Return a link to the run's page in the admin, or "-" for None."""
    if run_id is None:
        return "-"
    address = reverse(f"admin:agents_{Run._meta.model_name}_change", args=[run_id])
    return format_html('<a href="{}">{}</a>', address, run_id)


def rows_table(headings: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> SafeString | str:
    """Return a small table, or "none yet" without rows.

    Cells that are a `SafeString`, such as a link of `run_link`, are markup; all others are escaped.
    """
    if not rows:
        return gettext("none yet")
    head = format_html_join("", "<th>{}</th>", ((heading,) for heading in headings))
    body = format_html_join("", "<tr>{}</tr>", ((_cells(row),) for row in rows))
    return format_html(
        '<table class="vel-table"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body
    )


def _cells(row: tuple[object, ...]) -> SafeString:
    displayed = (cell if isinstance(cell, SafeString) else visible(str(cell)) for cell in row)
    return format_html_join("", "<td>{}</td>", ((cell,) for cell in displayed))
