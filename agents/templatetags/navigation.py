"""`{% navigation "bar" as entries %}`: the links that every page has."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AnonymousUser
from django.template import Context

from agents.doors.web.navigation import NavigationEntry
from agents.doors.web.navigation import navigation as entries_at

register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: Context, place: str) -> list[NavigationEntry]:
    return entries_at(place, context.get("user") or AnonymousUser())
