"""Slack: list_slack_channels and send_slack_message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from agents.features.credentials.public import credential_for
from agents.features.slack.actions import PROVIDER
from agents.features.slack.client import SlackClient, SlackFailed
from agents.middleware.base import Middleware, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.review.parts import one_line
from agents.secret_text import SecretText, SecretUnreadable
from agents.spec import AgentSpec

_SECONDS = 60.0
_DESCRIBE_SECONDS = 10.0


class ListSlackChannelsInput(BaseModel):
    limit: int = Field(default=100, ge=1, le=1000)


class SendSlackMessageInput(BaseModel):
    channel_id: str = Field(pattern=r"^[A-Z0-9]{3,40}$", description='As "C1234567890".')
    text: str = Field(min_length=1, max_length=40_000)


class SlackMiddleware(Middleware):
    """The two tools, for agents with the integration. Sending waits for a person."""

    name = "slack"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return TOOLS if PROVIDER in spec.integrations else []

    def every_tool(self) -> list[Tool[Any]]:
        return TOOLS

    def wanted_by(self, spec: AgentSpec) -> str:
        return "integrations" if PROVIDER in spec.integrations else ""


async def run_list_slack_channels(
    context: ToolContext, given: ListSlackChannelsInput
) -> ToolResult:
    return await _with_slack(context, lambda slack: slack.channels(given.limit))


async def run_send_slack_message(context: ToolContext, given: SendSlackMessageInput) -> ToolResult:
    return await _with_slack(context, lambda slack: slack.send(given.channel_id, given.text))


async def describe_message(context: ToolContext, given: SendSlackMessageInput) -> str:
    """Return the name of the channel: a person cannot know its id."""
    secret = await context.in_database(_secret, context.owner_id)
    if secret is None:
        return ""
    client = SlackClient(secret, seconds=_DESCRIBE_SECONDS)
    try:
        found = await context.in_thread(client.channel, given.channel_id)
    except SlackFailed as failure:
        return f"Slack does not name the channel {given.channel_id}: {failure}"
    except SecretUnreadable:
        return ""
    kind = "private channel" if found["is_private"] else "channel"
    return f"{given.channel_id} is the {kind} #{one_line(found['name'], 100)}."


async def _with_slack(context: ToolContext, ask: Callable[[SlackClient], Any]) -> ToolResult:
    """Call Slack in a thread, with the current credential: a removed one must not be used again."""
    secret = await context.in_database(_secret, context.owner_id)
    if secret is None:
        return error(
            "Slack is not connected: ask the user to add a bot token under Connections.",
            "not_connected",
        )
    client = SlackClient(secret, seconds=min(20.0, context.deadline))
    try:
        return ToolResult(await context.in_thread(ask, client))
    except SlackFailed as failure:
        return error(str(failure), "outcome_unknown" if failure.sent is None else failure.code)
    except SecretUnreadable:
        return error(
            "The stored Slack token cannot be read. Only an operator can fix this.",
            "not_connected",
        )


def _secret(owner_id: int) -> SecretText | None:
    row = credential_for(owner_id, PROVIDER)
    return row.secret if row else None


TOOLS: list[Tool[Any]] = [
    Tool(
        "list_slack_channels",
        "List Slack channels: id, name, is_private.",
        ListSlackChannelsInput,
        run_list_slack_channels,
        Effect.READ,
        time_limit=_SECONDS,
    ),
    Tool(
        "send_slack_message",
        "Send a message to a Slack channel. A person approves it first.",
        SendSlackMessageInput,
        run_send_slack_message,
        Effect.EXTERNAL,
        time_limit=_SECONDS,
        describe=describe_message,
    ),
]

MIDDLEWARE = (SlackMiddleware(),)
