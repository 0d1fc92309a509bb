"""Run the guardrails of a run: each check ends in a ruling, and an error blocks.

The checked text or call takes effect only after the decision. So if a driver dies in between, the
check is only repeated.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.calls.results import clean_text
from agents.events.append import EventDraft, dump
from agents.events.event import OMITTED, Omitted
from agents.features.guardrails.events import GuardBlocked, GuardReplaced
from agents.features.guardrails.guardrail import STAGES, Decision, GuardContext, Guardrail, makes
from agents.features.guardrails.program import ProgramGuards
from agents.features.guardrails.registry import guardrails
from agents.features.guardrails.usable import OF_PROGRAM
from agents.kernel.beside import Beside
from agents.kernel.middleware import RunContext, ToolCallRequest
from agents.kernel.tool_calls import Call, ToolResult
from agents.middleware.registry import ToolkitMissing
from agents.models import Effect, Run
from agents.services.runs.control import toolkit_of

logger = logging.getLogger(__name__)

BESIDE = Beside("guardrail")
REFUSED = "guardrail"
"""The error code of runs and calls that a guardrail has blocked."""
_RUN_CODE = frozenset({"execute", "execute_python", "execute_in_sandbox"})


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision of all guardrails of a stage. `guardrail`: who blocked, or who replaced.

    `is_broken`: a check failed, so it decided nothing.
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

    def __init__(self, names: Sequence[str], of_program: Mapping[str, Guardrail]) -> None:
        """`of_program` are those of the Python program that the run belongs to, by name.

        Raises `ToolkitMissing` and `UnknownGuardrail`.
        """
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

    async def blocked_call(self, run: RunContext, request: ToolCallRequest) -> Ruling | None:
        """Return the ruling if a guardrail blocks the call, otherwise None.

        While this process drives the run, a call that has passed is not checked again unless a
        person edits its input.
        """
        call = request.row
        given = call.edited_input or call.input
        question = (call.turn, call.position, given)
        if not self.has("check_tool_call") or question in self._cleared:
            return None
        context = context_of(run, call.turn, leaves_machine=_leaves_machine(run, request))
        ruling = await self.rule("check_tool_call", context, call.tool, json.loads(given))
        if ruling.action == "block":
            return ruling
        self._cleared.add(question)
        return None

    async def passed_result(self, run: RunContext, call: Call, result: ToolResult) -> ToolResult:
        """Return `result` as the guardrails let it pass, changed in place.

        It is unchanged, has another text, or is withheld and becomes an error. The tool's effects
        remain.
        """
        if not self.has("check_tool_result"):
            return result
        given = json.loads(call.edited_input or call.input)
        context = context_of(run, call.turn)
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
            result.is_error, result.code = True, REFUSED
        return result


def _leaves_machine(run: RunContext, request: ToolCallRequest) -> bool:
    """Return whether the input of a call can get to another machine."""
    if request.effect == Effect.EXTERNAL or request.leaves_machine:
        return True
    return request.row.tool in _RUN_CODE and run.spec.network != "none"


async def _decision(
    guardrail: Guardrail,
    stage: str,
    context: GuardContext,
    arguments: tuple[Any, ...],
    may_replace: bool,
) -> Decision | str:
    """Return a valid decision, or the reason why the decision is invalid."""
    extra = {"run_id": context.run_id, "guardrail": guardrail.name, "stage": stage}
    try:
        decided = await BESIDE.call(
            getattr(guardrail, stage), context, *arguments, seconds=guardrail.seconds
        )
    except TimeoutError:
        logger.warning("a guardrail took too long", extra=extra)
        return f"no decision within {guardrail.seconds:g} s"
    except Exception as error:  # code of a third party
        logger.exception("a guardrail failed", extra=extra)
        # The error's text may contain the checked text, so it is only in the log.
        return type(error).__name__
    if not isinstance(decided, Decision):
        return f"it returned {type(decided).__name__}, not a Decision"
    if decided.action == "replace" and not (may_replace and isinstance(decided.text, str)):
        return f"{stage} cannot replace"
    return decided


def program_guards(run: Run, fingerprint: str) -> ProgramGuards | None:
    """Return the guardrails and hooks of the run's Python program.

    `fingerprint` is that of the program in the run's version. None without a program, or if it runs
    in another process.
    """
    toolkit = toolkit_of(run, fingerprint)
    return None if toolkit is None else toolkit.part(ProgramGuards)


def context_of(run: RunContext, turn: int, **more: bool) -> GuardContext:
    row = run.row
    return GuardContext(row.pk, row.thread_id, row.owner_id, run.spec.slug, turn, **more)


def text_of(result: ToolResult) -> str:
    """Return a tool's result as one text."""
    if result.blocks:
        return "\n".join(block.get("text", f"[{block['type']}]") for block in result.content)
    return result.content if isinstance(result.content, str) else dump(result.content)
