"""`{% conversations user %}`: the list beside a run. The other tags are its other messages."""

from __future__ import annotations

from django import template

from agents.features.conversations.conversations import Found, conversations_of
from agents.features.conversations.earlier import Earlier, earlier_messages, later_runs
from agents.models import Run
from agents.selectors.visible import Person

register = template.Library()


@register.simple_tag
def conversations(person: Person) -> Found:
    return conversations_of(person)


@register.simple_tag(name="earlier_messages")
def earlier_messages_tag(person: Person, run: Run, asked: str | None) -> Earlier:
    return earlier_messages(person, run, asked or "")


@register.simple_tag(name="later_runs")
def later_runs_tag(person: Person, run: Run) -> list[Run]:
    return later_runs(person, run)
