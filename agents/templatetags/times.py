"""`{% ago moment %}`: a relative time, with the exact one on hover."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.doors.web.ages import in_words

register = template.Library()


@register.simple_tag
def ago(moment: datetime | None) -> SafeString | str:
    """Return an element `time`, which `clock.js` updates on pages that load it."""
    if moment is None:
        return ""
    at = moment.astimezone(UTC)
    # Without the names of months: Django translates its own formats.
    exact = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    words = in_words(timezone.now() - moment)
    return format_html(
        '<time datetime="{}" title="{}" data-clock="since">{}</time>', at.isoformat(), exact, words
    )
