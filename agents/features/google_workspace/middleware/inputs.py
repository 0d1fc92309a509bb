"""The calls of Google, and the types of texts in their inputs.

Texts are checked here, since patterns in schemas would cost tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from agents.features.credentials.public import credential_for
from agents.features.google_workspace.actions import PROVIDER
from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.keys import ADDRESS, GoogleKey, opened
from agents.features.google_workspace.client.session import GoogleSession
from agents.hidden_text import visible
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.secret_text import SecretUnreadable


class GoogleInput(BaseModel):
    """The base of inputs. Built at first use, since most processes do not need these tools."""

    model_config = ConfigDict(defer_build=True)


_ID = re.compile(r"[A-Za-z0-9_.@#%+=-]{1,1024}")


def _checked(fits: Callable[[str], object], problem: str) -> AfterValidator:
    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(problem)
        return text

    return AfterValidator(check)


def line(most: int, least: int = 0) -> AfterValidator:
    """Return a validator of one line of `least` to `most` characters, none of them hidden.

    The approver must see all of it.
    """
    return _checked(
        lambda text: least <= len(text) <= most and "\n" not in text and visible(text) == text,
        f"must be one line of {least} to {most:,} visible characters",
    )


def text(most: int) -> AfterValidator:
    return _checked(lambda given: len(given) <= most, f"must have at most {most:,} characters")


def at_most(most: int, least: int = 0) -> AfterValidator:
    """Return a validator of a list with `least` to `most` items."""

    def check(items: list[str]) -> list[str]:
        if not least <= len(items) <= most:
            raise ValueError(f"must have {least} to {most} items")
        return items

    return AfterValidator(check)


Id = Annotated[str, _checked(_ID.fullmatch, "is no id: take one from a list")]
Address = Annotated[
    str,
    _checked(ADDRESS.fullmatch, "must be one plain address, as ann@example.com, without a name"),
]
"""Checked, so that the approver can see the receivers."""
CalendarId = Annotated[
    str, _checked(lambda text: not text or _ID.fullmatch(text), "is no id: take one from a list")
]
"""Empty means the account's own calendar."""
PageToken = Annotated[str, line(2_000)]


SECONDS = 60.0


def google_tool(
    name: str, description: str, model: Any, run: Any, effect: Effect, describe: Any = None
) -> Tool[Any]:
    return Tool(name, description, model, run, effect, time_limit=SECONDS, describe=describe)


async def with_google(context: ToolContext, use: Callable[[GoogleSession], Any]) -> ToolResult:
    """Call `use` in a thread, with the current credential, and return its result.

    The credential is read for each call, because a removed one must not be used. Errors of Google
    and a missing credential become error results.
    """
    try:
        found = await context.in_database(_key, context.owner_id)
    except SecretUnreadable:
        return error(
            "The stored Google credential cannot be read. Only an operator can fix this.",
            "not_connected",
        )
    if found is None:
        return error(
            "Google is not connected: ask the user to connect it under Connections.",
            "not_connected",
        )
    session = GoogleSession(*found, seconds=min(SECONDS, context.deadline))
    try:
        return ToolResult(await context.in_thread(use, session))
    except GoogleFailed as failure:
        return error(str(failure), "outcome_unknown" if failure.sent is None else failure.code)


def _key(owner_id: int) -> tuple[GoogleKey, Hashable] | None:
    row = credential_for(owner_id, PROVIDER)
    return (opened(row.secret), (row.pk, row.updated_at)) if row else None
