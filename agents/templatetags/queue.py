"""`{% waiting_count user %}`: the number of pending requests that the user may see."""

from __future__ import annotations

from django import template

from agents.selectors.queue import pending_for
from agents.selectors.visible import Person

register = template.Library()


@register.simple_tag
def waiting_count(user: Person) -> int:
    return pending_for(user).count()
