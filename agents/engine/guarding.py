"""A run's guardrails at work: every check ends in a ruling, and what went wrong is a block.

Nothing that a check decides about takes effect before its decision, so that a driver that dies in
between leaves only a check to be made again.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from agents.engine.database import Database
from agents.engine.handle import RunHandle
from agents.engine.journal import write_events
from agents.engine.journal_rows import Call, Writer
from agents.engine.results import clean_text
from agents.events.append import EventDraft, dump
from agents.events.catalogue.guardrails import GuardBlocked, GuardReplaced
from agents.events.catalogue.messages import ReasoningDelta, TextDelta
from agents.events.event import OMITTED, Omitted, Piece
from agents.guards.guardrail import STAGES, Decision, GuardContext, Guardrail, makes
from agents.guards.registry import chosen, guardrails
from agents.guards.runner import GUARDRAILS
from agents.guards.usable import OF_PROGRAM
from agents.middleware.base import Tool, ToolResult
from agents.middleware.registry import ToolkitMissing
from agents.models import Effect, Message, MessageRole, Run
from agents.selectors.transcript import INPUT_REFUSED
from agents.services.run_toolkits import toolkit_of

logger = logging.getLogger(__name__)

REFUSED = "guardrail"
_RUN_CODE = frozenset({"execute", "execute_python", "execute_in_sandbox"})


@dataclass(frozen=True, slots=True)
class Ruling:
    """What all guardrails of a stage came to. `guardrail`: who blocked, or who replaced.

    `is_broken`: it was not decided, but failed.
    """

    action: str = "allow"
    text: str = ""
    reason: str = ""
    guardrail: str = ""
    is_broken: bool = False

    def event(self, stage: str, *, call_id: str | Omitted = OMITTED) -> EventDraft:
        if self.action == "replace":
            return GuardReplaced(stage=stage, guardrail=self.guardrail, call_id=call_id)
        return GuardBlocked(
            stage=stage, guardrail=self.guardrail, call_id=call_id, reason=self.reason
        )


class UnknownGuardrail(Exception):
    """An agent has a guardrail that is not registered in this process."""


class RunGuards:
    """The guardrails of one run, by stage, in the order in which they check."""

    def __init__(self, run: Run, names: Sequence[str], of_program: Mapping[str, Guardrail]) -> None:
        """`of_program` are those of the Python program that the run belongs to, by name."""
        self._run = run
        self._cleared: set[tuple[int, int, str]] = set()
        """(turn, position, input) of calls that these guardrails have let pass."""
        known = {**guardrails(), **of_program}
        for name in names:
            if name.startswith(OF_PROGRAM) and name not in known:
                raise ToolkitMissing
            if name not in known:
                raise UnknownGuardrail(
                    f"The agent has the guardrail {name!r}, which is not registered on this "
                    'worker: add it to VEL["GUARDRAILS"] in the settings, or take it from the '
                    "agent."
                )
        self._of = {
            stage: tuple(known[name] for name in names if makes(known[name], stage))
            for stage in STAGES
        }

    def has(self, stage: str) -> bool:
        return bool(self._of[stage])

    async def rule(
        self, stage: str, context: GuardContext, *given: Any, text: str | None = None
    ) -> Ruling:
        """Let the guardrails of `stage` decide. Without `text` there is nothing to replace."""
        replaced: list[str] = []
        for guardrail in self._of[stage]:
            arguments = (*copy.deepcopy(given), *(() if text is None else (text,)))
            decision = await _decision(guardrail, stage, context, arguments, text is not None)
            if isinstance(decision, str):
                reason = f"it failed ({decision})"
                return Ruling("block", "", reason, guardrail.name, is_broken=True)
            if decision.action == "block":
                reason = clean_text(decision.reason)[:1000] or "no reason given"
                return Ruling("block", "", reason, guardrail.name)
            if decision.action == "replace":
                text = clean_text(decision.text)
                replaced.append(guardrail.name)
        if replaced:
            return Ruling("replace", text or "", "", ", ".join(replaced))
        return Ruling()

    async def call_refusal(self, call: Call, tool: Tool[Any], handle: RunHandle) -> Ruling | None:
        """Why a call may not be made, if a guardrail says so. The same question is asked once."""
        given = call.edited_input or call.input
        question = (call.turn, call.position, given)
        if not self.has("check_tool_call") or question in self._cleared:
            return None
        context = context_of(
            self._run, call.turn, leaves_machine=self._leaves_machine(call.tool, tool)
        )
        with handle.interruptible():
            ruling = await self.rule("check_tool_call", context, call.tool, json.loads(given))
        if ruling.action == "block":
            return ruling
        self._cleared.add(question)
        return None

    def _leaves_machine(self, name: str, tool: Tool[Any]) -> bool:
        """Whether what the call is given can get to another machine."""
        if tool.effect == Effect.EXTERNAL or tool.leaves_machine:
            return True
        return name in _RUN_CODE and self._run.spec["network"] != "none"

    async def passed_result(self, call: Call, result: ToolResult) -> ToolResult:
        """The result as it may be stored. What the tool did stays done."""
        if not self.has("check_tool_result"):
            return result
        given = json.loads(call.edited_input or call.input)
        context = context_of(self._run, call.turn)
        text = text_of(result)
        ruling = await self.rule("check_tool_result", context, call.tool, given, text=text)
        if ruling.action == "allow":
            return result
        result.events.append(ruling.event("tool_result", call_id=call.call_id))
        result.blocks = False
        if ruling.action == "replace":
            result.content = ruling.text
        else:
            result.content = (
                f"The call was made, but the guardrail {ruling.guardrail} withholds its result: "
                f"{ruling.reason}. Do not try to get it in another way."
            )
            result.is_error, result.code = True, "guardrail"
        return result


async def _decision(
    guardrail: Guardrail,
    stage: str,
    context: GuardContext,
    arguments: tuple[Any, ...],
    may_replace: bool,
) -> Decision | str:
    """A decision that can be carried out, or why there is none."""
    extra = {"run_id": context.run_id, "guardrail": guardrail.name, "stage": stage}
    try:
        given = await GUARDRAILS.call(
            getattr(guardrail, stage), context, *arguments, seconds=guardrail.seconds
        )
    except TimeoutError:
        logger.warning("a guardrail took too long", extra=extra)
        return f"no decision within {guardrail.seconds:g} s"
    except Exception as error:  # a guardrail is somebody else's code
        logger.exception("a guardrail failed", extra=extra)
        # The text of the error may hold what was checked: it stays in the log.
        return type(error).__name__
    if not isinstance(given, Decision):
        return f"it returned {type(given).__name__}, not a Decision"
    if given.action == "replace" and not (may_replace and isinstance(given.text, str)):
        return f"{stage} cannot replace"
    return given


def context_of(run: Run, turn: int, **more: bool) -> GuardContext:
    return GuardContext(run.pk, run.thread_id, run.owner_id, run.spec["slug"], turn, **more)


async def check_message(
    database: Database, handle: RunHandle, writer: Writer, run: Run, turn: int
) -> tuple[str, str] | None:
    """Whether a run may begin or go on: the (code, message) of its end if not.

    Before the first model call the person's message is checked. What replaces it is stored in its
    place; made again after a crash, the check finds that. Raises `ToolkitMissing` for a guardrail
    of a Python program that this process is not.
    """
    try:
        names = chosen(run.spec.get("guardrails", ()))
        if not names:
            return None
        toolkit = toolkit_of(run, run.spec.get("toolkit", ""))
        guards = RunGuards(run, names, toolkit.guardrails if toolkit is not None else {})
    except (UnknownGuardrail, ImproperlyConfigured) as problem:
        return REFUSED, str(problem)
    if turn or not guards.has("check_input"):
        return None
    message = await database.run(_opening_message, run.pk)
    with handle.interruptible():
        ruling = await guards.rule("check_input", context_of(run, 0), text=message.text)
    if ruling.action == "replace" and not ruling.text.strip():
        ruling = Ruling("block", "", "nothing of the message was left", ruling.guardrail)
    if ruling.action == "block":
        await database.share(write_events, writer, [ruling.event("input")])
        return (
            INPUT_REFUSED,
            f"The guardrail {ruling.guardrail} blocked the message: {ruling.reason}.",
        )
    if ruling.action == "replace":
        await database.run(_replace_message, writer, message, ruling)
    return None


def _opening_message(run_id: str) -> Message:
    return Message.objects.get(run=run_id, turn=0, role=MessageRole.USER)


def _replace_message(writer: Writer, message: Message, ruling: Ruling) -> None:
    write_events(writer, [ruling.event("input")])
    rest = [block for block in message.blocks if block["type"] != "text"]
    content = dump([{"type": "text", "text": ruling.text}, *rest])
    Message.objects.filter(pk=message.pk).update(content=content)


def text_of(result: ToolResult) -> str:
    """A tool's result as one text."""
    if result.blocks:
        return "\n".join(block.get("text", f"[{block['type']}]") for block in result.content)
    return result.content if isinstance(result.content, str) else dump(result.content)


class HeldBack:
    """A reply's stream whose words are not shown: they have to be checked as a whole first."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        if kind not in (TextDelta, ReasoningDelta):
            self._stream.add(kind, part, text)

    def put(self, draft: EventDraft) -> None:
        self._stream.put(draft)

    def drop_parts(self) -> None:
        self._stream.drop_parts()
