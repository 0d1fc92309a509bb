"""Carry out tool calls. A refusal is a result too, and names the next step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agents.features.mcp_server.caller import Caller, in_database
from agents.features.mcp_server.starts import McpCall, mcp_runs_for, request_key, start_call
from agents.features.mcp_server.tools import (
    CANCEL_RUN,
    GET_RUN,
    MAX_WAIT_SECONDS,
    WAIT_SECONDS,
    WAIT_WITH_PROGRESS,
    agent_of,
)
from agents.features.mcp_server.waiting import Result, Tell, answer_of, one_of_few, wait_for_answer
from agents.models import Run
from agents.services.errors import InvalidRequest, NotAllowed, NotFound
from agents.services.runs.control import cancel_for

Id = Annotated[str, Field(pattern=r"^[0-9a-z]{1,26}$")]
Wait = Annotated[int, Field(ge=0, le=MAX_WAIT_SECONDS)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AgentArguments(_Arguments):
    message: str
    thread: Id | None = None
    context: dict[str, JsonValue] | None = None
    output_schema: dict[str, JsonValue] | None = None
    wait_seconds: Wait | None = None
    idempotency_key: str | None = None


class GetArguments(_Arguments):
    run: Id
    wait_seconds: Wait | None = None


class CancelArguments(_Arguments):
    run: Id


Form = TypeVar("Form", bound=_Arguments)


class UnknownTool(Exception):
    """The tool does not exist or is not available to the caller."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a tool. `tell` is None if the client did not request progress."""

    caller: Caller
    name: str
    arguments: dict[str, Any]
    request_id: str | int | None
    tell: Tell | None = None


async def call_tool(asked: Asked) -> Result:
    """Carry out a call. Raises `UnknownTool`, and `ServiceError` if the call is refused."""
    if asked.name == CANCEL_RUN:
        return await _cancel(asked)
    if asked.name == GET_RUN:
        _require(asked.caller.may_read, "'mcp' or 'read'")
        wanted = _read(GetArguments, asked)
        with one_of_few(asked.caller):
            # By default it does not wait: the call that started the run has waited already.
            return await _answer(asked, wanted.run, wanted.wait_seconds or 0)
    # Checked before the agent is looked up: other callers must not learn which agents exist.
    _require(asked.caller.may_call, "'mcp', or 'read' and 'run'")
    agent = await in_database(agent_of, asked.name, asked.caller)
    if agent is None:
        raise UnknownTool
    form = _read(AgentArguments, asked)
    call = McpCall(
        agent=agent.slug,
        message=form.message,
        thread=form.thread,
        context=form.context,
        output_schema=form.output_schema,
        idempotency_key=form.idempotency_key,
        request_key=_key(asked),
    )
    with one_of_few(asked.caller):
        run = await in_database(start_call, call, owner=asked.caller.user)
        return await _answer(asked, run.pk, form.wait_seconds)


async def _answer(asked: Asked, run_id: str, seconds: float | None) -> Result:
    await in_database(_run_of, asked.caller, run_id)
    if seconds is None:
        seconds = WAIT_SECONDS if asked.tell is None else WAIT_WITH_PROGRESS
    if seconds:
        await wait_for_answer(run_id, asked.caller, seconds, asked.tell or _say_nothing)
    return await in_database(lambda: answer_of(_run_of(asked.caller, run_id)))


async def _cancel(asked: Asked) -> Result:
    _require(asked.caller.may_cancel, "'mcp' or 'run'")
    form = _read(CancelArguments, asked)

    def cancel() -> Result:
        run = _run_of(asked.caller, form.run)
        cancel_for(asked.caller.user, run, reason="cancelled through MCP")
        return {**answer_of(_run_of(asked.caller, form.run)), "isError": False}

    return await in_database(cancel)


def _run_of(caller: Caller, run_id: str) -> Run:
    runs = mcp_runs_for(caller.user).select_related("agent_version", "thread")
    run = runs.filter(pk=run_id).first()
    if run is None:
        raise NotFound(
            "You have no run with this id that was started through MCP.", code="unknown_run"
        )
    return run


def _key(asked: Asked) -> str:
    caller = asked.caller
    if not caller.session or asked.request_id is None:
        return ""
    return request_key(caller.token.pk, caller.session, asked.request_id)


def _require(may: bool, scopes: str) -> None:
    if not may:
        raise NotAllowed(
            f"This needs a token with the scope {scopes}. Create another in your profile.",
            code="insufficient_scope",
        )


def _read(form: type[Form], asked: Asked) -> Form:
    """Validate the arguments. Raises `InvalidRequest`, which repeats only names from the input."""
    try:
        return form.model_validate(asked.arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:100]
        place = re.sub(r"[^\w.]", "?", place, flags=re.ASCII)
        raise InvalidRequest(f"{place}: {first['msg']}") from None


async def _say_nothing(message: str) -> None:
    return
