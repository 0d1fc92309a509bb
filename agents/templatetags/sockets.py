"""`{% sockets %}`: the path below which a page's sockets are."""

from __future__ import annotations

from django import template

from agents.settings import PageSettings

register = template.Library()


@register.simple_tag
def sockets() -> str:
    return f"/{PageSettings.now().SOCKETS.strip('/')}/"
