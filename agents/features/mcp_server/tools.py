"""The tools of a caller: one for each agent, and two for the runs that they start.

Of an agent's set-up, a client can see only the name, the description, the variables of its prompts
and the schema of its answers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from agents.features.mcp_server.caller import Caller
from agents.features.mcp_server.starts import mcp_tools_for
from agents.hidden_text import visible
from agents.kernel.relations import relations
from agents.models import Agent
from agents.models.run import wait_reasons
from agents.prompt_variables import CONTEXT, names_in
from agents.services.errors import InvalidRequest
from agents.states import RunStatus
from agents.structured_output.schema import check_schema

MAX_BODY_BYTES = 4 * 1024**2
"""Limit of one request. A message in it has the limit `VEL["MESSAGE_BYTES"]`."""
MAX_ID = 200
"""Characters of a request's id, which is sent back, and of a session's id."""
TOOLS_PER_PAGE = 100

WAIT_SECONDS = 50.0
"""Seconds that a call waits for its answer. Many clients cancel after a minute."""
WAIT_WITH_PROGRESS = 600.0
"""The same for clients that request progress: each progress message restarts their time limit."""
MAX_WAIT_SECONDS = 3_600
LOOK_SECONDS = 5.0
"""Seconds between two checks of the token, after which the client also gets a progress message."""
TELL_SECONDS = 0.5
"""Seconds between two progress messages."""
MAX_PROGRESS = 400
"""Characters of a progress message."""


GET_RUN = "vel_get_run"
CANCEL_RUN = "vel_cancel_run"
LONGEST_NAME = 64
"""The limit of most clients and of the models that they use."""
LONGEST_DESCRIPTION = 4_000

_OURS = "vel_"
_DIGITS = 16
_DIGEST = re.compile(rf"_[0-9a-f]{{{_DIGITS}}}\Z")
_SLUG = re.compile(r"[A-Za-z0-9_-]{1,100}")

Definition = dict[str, Any]


def tool_name(slug: str) -> str:
    """Return the constant tool name of an agent: its slug, or a shortened slug with a digest.

    A slug that ends like a digest gets a digest too, so no slug can match another agent's name.
    """
    if len(slug) <= LONGEST_NAME and not slug.startswith(_OURS) and not _DIGEST.search(slug):
        return slug
    digest = hashlib.sha256(slug.encode()).hexdigest()[:_DIGITS]
    return f"{slug[: LONGEST_NAME - _DIGITS - 1]}_{digest}"


def agent_of(name: str, caller: Caller) -> Agent | None:
    """Return the agent with this tool name if `caller` may use it."""
    if not _SLUG.fullmatch(name):
        return None
    offered = mcp_tools_for(caller.user)
    if _DIGEST.search(name):
        candidates = offered.filter(slug__startswith=name[: -_DIGITS - 1])
    else:
        candidates = offered.filter(slug=name)
    return next((agent for agent in candidates if tool_name(agent.slug) == name), None)


def tools_page(caller: Caller, cursor: str | None) -> tuple[list[Definition], str | None]:
    """Return definitions of tools in the protocol's format, and the next page's cursor or None.

    Agents are ordered by slug. Only tools that the token may call. Raises `InvalidRequest` for an
    invalid cursor.
    """
    if cursor is not None and not _SLUG.fullmatch(cursor):
        raise InvalidRequest("Invalid cursor. Start again without a cursor.")
    tools: list[Definition] = []
    if cursor is None and caller.may_read:
        tools.append(_GET)
    if cursor is None and caller.may_cancel:
        tools.append(_CANCEL)
    if not caller.may_call:
        return tools, None
    agents = mcp_tools_for(caller.user).order_by("slug")
    if cursor is not None:
        agents = agents.filter(slug__gt=cursor)
    found = list(
        agents.prefetch_related(*(each.name for each in relations()))[: TOOLS_PER_PAGE + 1]
    )
    page = found[:TOOLS_PER_PAGE]
    tools += [_tool(agent) for agent in page]
    return tools, page[-1].slug if len(found) > TOOLS_PER_PAGE else None


def _tool(agent: Agent) -> Definition:
    description = visible(agent.description.strip()) or f"The agent {visible(agent.name)}."
    return {
        "name": tool_name(agent.slug),
        "title": visible(agent.name),
        "description": description[:LONGEST_DESCRIPTION],
        "inputSchema": _input_schema(agent),
        "outputSchema": answer_schema(agent.output_schema),
        "annotations": {
            "title": visible(agent.name),
            "readOnlyHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        },
    }


def _input_schema(agent: Agent) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "message": {"type": "string", "description": "The task for the agent.", "minLength": 1},
        "thread": {
            "type": "string",
            "description": (
                "The id of a conversation to continue, from an earlier answer. Without it, a new "
                "one starts without memory of others."
            ),
        },
    }
    if names := _context_names(agent):
        properties["context"] = {
            "type": "object",
            "description": "Values that the agent needs when a conversation starts.",
            "properties": {name: {"type": ["string", "number", "boolean"]} for name in names},
        }
    if agent.output_schema is None:
        properties["output_schema"] = {
            "type": "object",
            "description": "The JSON Schema of the answer. Without it: text.",
        }
    properties["wait_seconds"] = _WAIT
    properties["idempotency_key"] = {
        "type": "string",
        "description": (
            "Any text that you choose. The same call with the same text starts no new run and has "
            "the first answer."
        ),
    }
    return _object(properties, ["message"])


def _context_names(agent: Agent) -> list[str]:
    rows = (row for relation in relations() for row in relation.rows(agent))
    prompts = [agent.system_prompt, *(getattr(row, "system_prompt", "") for row in rows)]
    names = {name for prompt in prompts for name in names_in(prompt or "")}
    return sorted(name.removeprefix(CONTEXT) for name in names if name.startswith(CONTEXT))


SPACE = "space"
"""The value of `waits_for` while the disk is full."""


def answer_schema(output: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of `structuredContent`; `output` is the schema of the agent's answers."""
    properties: dict[str, Any] = {
        "run": {"type": "string"},
        "thread": {"type": "string", "description": "To continue the conversation."},
        "status": {"type": "string", "enum": list(RunStatus.values)},
        "waits_for": {
            "type": "string",
            "enum": [*(reason for reason, _ in wait_reasons() if reason), SPACE],
            "description": "A person must act, at `url`; with `space` somebody must make room on "
            "the server's disk, and then it continues automatically.",
        },
        "url": {"type": "string", "description": "The run's page, for people."},
        "answer": {"type": "string"},
        "error": _object({"code": {"type": "string"}, "message": {"type": "string"}}, []),
    }
    if output is not None:
        # With resolved references: they are relative to the agent's schema.
        properties["output"] = check_schema(dict(output))
    else:
        properties["output"] = {"description": "The answer in the form that was asked for."}
    return _object(properties, ["run", "thread", "status", "url"])


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_WAIT = {
    "type": "integer",
    "minimum": 0,
    "maximum": MAX_WAIT_SECONDS,
    "description": (
        f"How long to wait for the answer. Then the run continues: {GET_RUN} has its answer."
    ),
}
_RUN = {"type": "string", "description": "Its id, from an answer."}
_GET: Definition = {
    "name": GET_RUN,
    "title": "Answer of a run",
    "description": "How a run is that was begun here, and its answer when it has ended: for runs "
    "that took longer, waited for a person, or whose connection was lost.",
    "inputSchema": _object({"run": _RUN, "wait_seconds": _WAIT}, ["run"]),
    "outputSchema": answer_schema(None),
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
_CANCEL: Definition = {
    "name": CANCEL_RUN,
    "title": "Cancel a run",
    "description": "End a run that was begun here, with all that it has delegated.",
    "inputSchema": _object({"run": _RUN}, ["run"]),
    "outputSchema": answer_schema(None),
    "annotations": {"readOnlyHint": False, "idempotentHint": True, "openWorldHint": False},
}
