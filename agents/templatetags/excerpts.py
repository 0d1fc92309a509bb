"""`{% excerpt excerpts run_id %}`: a text that a search has found, with the words marked."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.hidden_text import visible
from agents.selectors.excerpts import Part

register = template.Library()


@register.simple_tag
def excerpt(excerpts: dict[str, list[Part]] | str, run_id: str) -> SafeString | str:
    """Return the excerpt of a run, or "". A list without a search has no `excerpts`."""
    parts = excerpts.get(run_id) if isinstance(excerpts, dict) else None
    if not parts:
        return ""
    marked = format_html_join("", "{}", ((_part(part),) for part in parts))
    return format_html('<span class="excerpt">{}</span>', marked)


def _part(part: Part) -> str:
    text = visible(part.text)
    return format_html("<mark>{}</mark>", text) if part.is_found else text
