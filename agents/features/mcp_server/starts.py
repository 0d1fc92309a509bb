"""Start the runs of MCP calls, and cancel them with their call.

A call has a key, made of its token, the client's session and the request's id. So the same request
starts one run only, however often it is sent, and other clients cannot cancel it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from agents.events.append import dump
from agents.models import Agent, IdempotencyKey, Run
from agents.selectors.visible import Person, agents_for
from agents.services.errors import InvalidRequest, NotFound
from agents.services.runs.control import cancel_for
from agents.services.runs.start import RunRequest, create_run

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class McpCall:
    """An MCP call of an agent. `request_key` comes from the function `request_key`, or is empty."""

    agent: str
    message: str
    thread: str | None = None
    context: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    request_key: str = ""


def request_key(token_id: int, session: str, request_id: str | int) -> str:
    """Return a key for one request of one client. The ids 1 and "1" have different keys."""
    return _key("request", [token_id, session, request_id])


def start_call(call: McpCall, *, owner: AbstractBaseUser) -> Run:
    """Return the run of a call: a new one, or the one that the same call started before.

    Raises the errors of `create_run`, and `NotFound` for an agent that is not offered as a tool or
    a thread that was not started through MCP.
    """
    if not mcp_tools_for(owner).filter(slug=call.agent).exists():
        raise NotFound("You have no access to an agent tool with this name.", code="unknown_agent")
    client_key = call.idempotency_key
    if client_key is not None and not 0 < len(client_key) <= LONGEST_KEY:
        raise InvalidRequest(f"The idempotency_key must have 1 to {LONGEST_KEY} characters.")
    thread = call.thread
    if thread is not None and not mcp_runs_for(owner).filter(thread=thread, number=1).exists():
        raise NotFound(
            "You have no thread with this id that was started through MCP.", code="unknown_thread"
        )
    request = RunRequest(
        agent=call.agent,
        message=call.message,
        thread=thread,
        context=call.context,
        output_schema=call.output_schema,
        source=MCP_SOURCE,
    )
    key = _key("given", client_key) if client_key is not None else call.request_key or None
    with transaction.atomic():
        result = create_run(request, owner=owner, idempotency_key=key)
        if call.request_key and call.request_key != key:
            _name(call.request_key, result.run)
    return result.run


def cancel_call(key: str, *, owner: AbstractBaseUser, reason: str) -> bool:
    """End the run of the call with this `request_key`. Return False if no such run is active."""
    named = IdempotencyKey.objects.filter(owner_id=owner.pk, key=key).first()
    run = mcp_runs_for(owner).filter(pk=named.run_id).first() if named is not None else None
    if run is None or run.has_ended:
        return False
    cancel_for(owner, run, reason=reason)
    return True


def _name(key: str, run: Run) -> None:
    """Store a second key for the run."""
    try:
        with transaction.atomic():
            IdempotencyKey.objects.create(owner_id=run.owner_id, key=key, body_hash="", run=run)
    except IntegrityError:
        return  # the same request, sent again


def _key(kind: str, value: object) -> str:
    digest = hashlib.sha256(dump([kind, value]).encode("utf-8", "surrogatepass")).hexdigest()
    return f"mcp:{digest}"


MCP_SOURCE = "mcp"
"""`Run.source` of runs that MCP clients start."""


def mcp_tools_for(user: Person) -> QuerySet[Agent]:
    """Return the agents of `agents_for` that are offered as tools to MCP clients."""
    return agents_for(user).filter(mcp_tool=True)


def mcp_runs_for(user: Person) -> QuerySet[Run]:
    """Return the runs that `user` started through MCP. An MCP client can access no others."""
    if not user.is_authenticated:
        return Run.objects.none()
    return Run.objects.filter(is_copy=False, owner=user.pk, parent=None, source=MCP_SOURCE)
