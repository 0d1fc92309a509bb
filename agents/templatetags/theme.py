"""`{% theme %}`: light, dark, or empty, as the person chose it."""

from __future__ import annotations

from django import template
from django.template import RequestContext

from agents.web.theme import theme_of

register = template.Library()


@register.simple_tag(takes_context=True)
def theme(context: RequestContext) -> str:
    """Return the theme. Empty on pages without a request, such as the server's error pages."""
    request = context.get("request")
    return theme_of(request) if request is not None else ""
