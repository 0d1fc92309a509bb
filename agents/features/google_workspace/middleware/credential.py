"""Common parts of the Gmail and Calendar tools: the credential of the run's owner."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from agents.features.credentials.public import credential_for
from agents.features.google_workspace.actions import PROVIDER
from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.keys import GoogleKey, opened
from agents.features.google_workspace.client.session import GoogleSession
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.secret_text import SecretUnreadable

SECONDS = 60.0


def google_tool(name: str, description: str, model: Any, run: Any, effect: Effect) -> Tool[Any]:
    return Tool(name, description, model, run, effect, time_limit=SECONDS)


async def with_google(context: ToolContext, use: Callable[[GoogleSession], Any]) -> ToolResult:
    """Call Google in a thread, with the current credential: a removed one must not be used."""
    try:
        found = await context.in_database(_key, context.owner_id)
    except SecretUnreadable:
        return error(
            "The stored Google credential cannot be read, which only an operator can mend.",
            "not_connected",
        )
    if found is None:
        return error(
            "Google is not connected: tell the user to do that under Connections.",
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
