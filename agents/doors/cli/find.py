"""Search for rows by the start of their ids."""

from __future__ import annotations

from typing import TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from agents.doors.cli.errors import CliError
from agents.doors.cli.terminal import one_line
from agents.models import Agent
from agents.selectors.visible import agents_for

M = TypeVar("M", bound=Model)


def by_id(rows: QuerySet[M], beginning: str, what: str) -> M:
    """Return the one row of `rows` with an id that starts with `beginning`.

    Raises `CliError` unless there is exactly one.
    """
    found = list(rows.filter(pk__startswith=beginning.lower())[:2]) if beginning else []
    if not found:
        raise CliError(f"There is no {what} {one_line(beginning)!r} of yours.")
    if len(found) > 1:
        raise CliError(
            f"Several {what}s have an id that starts with {beginning!r}: write more of the id."
        )
    return found[0]


def agent_named(user: User, name: str) -> Agent:
    """Return the agent with the slug `name` or an id that starts with it, if `user` can use it.

    Raises `CliError` unless there is exactly one.
    """
    agents = agents_for(user)
    return agents.filter(slug=name).first() or by_id(agents, name, "agent")
