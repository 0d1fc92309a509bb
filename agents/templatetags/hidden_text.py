"""`{{ text|visible }}` for everything that an agent or a person wrote."""

from __future__ import annotations

from django import template

from agents.hidden_text import visible

register = template.Library()


@register.filter(name="visible", is_safe=False)
def visible_filter(value: object) -> str:
    """Return plain text, which the template escapes."""
    return visible(str(value))
