"""`{{ text|visible }}` for everything that an agent or a person wrote."""

from __future__ import annotations

from django import template

from agents.hidden_text import escaped_text, visible

register = template.Library()


@register.filter(name="visible", is_safe=False)
def visible_filter(value: object) -> str:
    """Return plain text, which the template escapes."""
    return visible(str(value))


@register.filter(name="editable", is_safe=False)
def editable_filter(value: object) -> str:
    """Return text for a field, with escapes that `agents.hidden_text.unescaped_text` reads."""
    return escaped_text(str(value))
