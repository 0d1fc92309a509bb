"""Call lifecycle hooks in a run. They can neither change nor end it."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import Any

from agents.features.guardrails.checking import program_guards, text_of
from agents.features.guardrails.events import HookFailed
from agents.features.guardrails.lifecycle_hooks import HookContext
from agents.features.guardrails.program import ProgramGuards
from agents.features.guardrails.registry import hook_calls
from agents.features.guardrails.usable import HookCall, HookCalls, joined
from agents.kernel.beside import Beside
from agents.kernel.middleware import (
    LoadContext,
    ModelHandler,
    ModelRequest,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.park import Park
from agents.middleware.base import Middleware, ToolResult
from agents.models import Run
from agents.providers.base import Reply
from agents.services.runs.ends import EndListener
from agents.states import RunStatus, WaitReason
from agents.toolkits import all_bound

logger = logging.getLogger(__name__)

BESIDE = Beside("hook")


@dataclass(slots=True)
class RunHooks:
    """The hooks for each point of a run: the operator's, then those of the program."""

    calls: HookCalls
    has_started: bool = False
    """Whether this driver has called `run_started`."""


class LifecycleMiddleware(Middleware):
    """Calls the hooks at each point. An exception is logged and becomes an event."""

    name = "lifecycle"

    def check_settings(self) -> None:
        hook_calls()

    def load(self, context: LoadContext) -> RunHooks | None:
        own = program_guards(context.row, context.spec.toolkit)
        calls = joined(hook_calls(), own.hooks if own is not None else None)
        return RunHooks(calls) if calls and calls.keys() != {"run_ended"} else None

    async def before_model(self, run: RunContext) -> None:
        hooks = run.state(RunHooks)
        if not run.turn and not hooks.has_started:
            hooks.has_started = True
            await _call_hooks(run, "run_started", run.turn)

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        if request.purpose != "step":
            return await handler(request)
        await _call_hooks(run, "before_model_call", request.turn)
        reply = await handler(request)
        usage = asdict(reply.usage)
        await _call_hooks(run, "after_model_call", request.turn, reply.stop_reason, usage)
        return reply

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        row = call.row
        if "before_tool" in run.state(RunHooks).calls:
            given = json.loads(row.edited_input or row.input)
            await _call_hooks(run, "before_tool", run.turn, row.call_id, row.tool, given)
        result = await handler(call)
        if "after_tool" in run.state(RunHooks).calls:
            outcome = (row.call_id, row.tool, text_of(result), result.is_error)
            await _call_hooks(run, "after_tool", run.turn, *outcome)
        return result

    async def on_park(self, run: RunContext, park: Park) -> None:
        if park.reason == WaitReason.APPROVAL:
            await _call_hooks(run, "approval_requested", run.turn, list(park.calls))


class LifecycleEnds(EndListener):
    """Calls `run_ended`. The log of the run is closed, so an exception is only logged."""

    def wants_ends(self) -> bool:
        programs = [toolkit.part(ProgramGuards) for toolkit in all_bound()]
        own = [part.hooks for part in programs if part is not None]
        return any("run_ended" in calls for calls in (hook_calls() or (), *own))

    async def run_ended(self, run: Run) -> None:
        context = _hook_context(run, run.spec["slug"], run.clock.turn)
        own = program_guards(run, run.spec.get("toolkit", ""))
        hooks = joined(hook_calls(), own.hooks if own is not None else None)
        for call in (hooks or {}).get("run_ended", ()):
            if call[0].endswith(".onError") and run.status != RunStatus.FAILED:
                continue
            arguments = (run.status, run.error_code, run.error_message)
            await _called(call, "run_ended", context, arguments)


async def _call_hooks(run: RunContext, point: str, turn: int, *arguments: Any) -> None:
    """Call the hooks of `point`, one after the other."""
    for call in run.state(RunHooks).calls.get(point, ()):
        context = _hook_context(run.row, run.spec.slug, turn)
        problem = await _called(call, point, context, arguments)
        if problem:
            await run.write_events([HookFailed(hook=call[0], point=point, message=problem)])


def _hook_context(run: Run, slug: str, turn: int) -> HookContext:
    return HookContext(run.pk, run.thread_id, run.owner_id, slug, turn)


async def _called(
    call: HookCall, point: str, context: HookContext, arguments: tuple[Any, ...]
) -> str:
    """Return an empty text, or a short reason. The text of an exception is only in the log."""
    name, function, seconds = call
    try:
        await BESIDE.call(function, context, *arguments, seconds=seconds)
    except TimeoutError:
        problem = f"took longer than {seconds:g} s"
    except Exception as error:  # code of a third party
        problem = f"raised {type(error).__name__}"
        logger.warning("a hook failed", exc_info=error, extra={"run_id": context.run_id})
    else:
        return ""
    logger.warning("hook %s %s at %s", name, problem, point, extra={"run_id": context.run_id})
    return problem
