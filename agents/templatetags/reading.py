"""`{% reading reading %}`: a waiting call as a person reads it."""

from __future__ import annotations

from django import template

from agents.reading import Reading

register = template.Library()


@register.inclusion_tag("web/reading.html", name="reading")
def reading_tag(reading: Reading) -> dict[str, Reading]:
    """Needs agents/web/reading.css. `reading.js` makes the same elements in a browser."""
    return {"reading": reading}
