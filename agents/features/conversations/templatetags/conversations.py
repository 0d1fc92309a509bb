"""`{% conversations user %}`: the list beside a run."""

from __future__ import annotations

from django import template

from agents.features.conversations.conversations import Found, conversations_of
from agents.selectors.visible import Person

register = template.Library()


@register.simple_tag
def conversations(person: Person) -> Found:
    return conversations_of(person)
