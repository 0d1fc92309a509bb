"""`{% navigation "bar" as entries %}`: the links that every page has."""

from __future__ import annotations

from django import template

from agents.doors.web.navigation import NavigationEntry
from agents.doors.web.navigation import navigation as entries_at

register = template.Library()


@register.simple_tag
def navigation(place: str) -> list[NavigationEntry]:
    return entries_at(place)
