"""Links, scripts and shortcuts that every page has: `{% navigation "bar" as entries %}`."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AnonymousUser
from django.template import Context

from agents.doors.web import navigation as links
from agents.doors.web import site_parts as parts

register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: Context, place: str) -> list[links.NavigationEntry]:
    return links.navigation(place, context.get("user") or AnonymousUser())


@register.simple_tag
def site_parts() -> list[parts.SitePart]:
    return parts.site_parts()


@register.simple_tag
def shortcuts() -> list[links.Shortcut]:
    return links.shortcuts()
