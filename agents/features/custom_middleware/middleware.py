"""Call the middleware of operators and programs, each on an event loop outside the engine."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NoReturn, TypeVar

from agents.custom.hooks import (
    EndRun,
    Hooks,
    ModelAnswer,
    ModelCall,
    RunInfo,
    ToolAnswer,
    ToolCallInfo,
    overrides,
)
from agents.engine.prompt.history import history_since, latest_compaction
from agents.events.append import dump
from agents.features.custom_middleware.program import ProgramMiddleware
from agents.features.custom_middleware.registry import registered
from agents.kernel.beside import Beside, Here
from agents.kernel.middleware import (
    LoadContext,
    ModelHandler,
    ModelRequest,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.park import End
from agents.middleware.base import Middleware, ToolResult
from agents.providers.base import ProviderError, Reply, Usage
from agents.services.runs.control import toolkit_of

logger = logging.getLogger(__name__)

FAILED = "middleware_failed"
"""The error code of a run whose middleware failed."""
BESIDE = Beside("middleware")
T = TypeVar("T")
_CODE = re.compile(r"[a-z0-9_]{1,50}")


@dataclass(frozen=True, slots=True)
class RunMiddleware:
    """The middleware of a run, the outermost first: the operator's, then the program's."""

    items: tuple[Hooks, ...]

    def with_hook(self, hook: str) -> list[Hooks]:
        return [item for item in self.items if overrides(item, hook)]


class CustomMiddleware(Middleware):
    name = "custom"

    def check_settings(self) -> None:
        registered()

    def load(self, context: LoadContext) -> RunMiddleware | None:
        toolkit = toolkit_of(context.row, context.spec.toolkit)
        own = None if toolkit is None else toolkit.part(ProgramMiddleware)
        items = (*registered(), *(own.items if own is not None else ()))
        return RunMiddleware(items) if items else None

    async def before_agent(self, run: RunContext) -> End | None:
        for item in run.state(RunMiddleware).with_hook("before_agent"):
            try:
                await BESIDE.call(item.before_agent, _info(run), seconds=item.seconds)
            except Exception as error:  # noqa: BLE001  # `_end_of` logs it
                end = _end_of(run, item, "before_agent", error)
                if end is not None:
                    return end
        return None

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        if request.purpose == "step":
            for item in reversed(run.state(RunMiddleware).with_hook("wrap_model_call")):
                handler = partial(_wrap_model_call, run, item, handler)
        return await handler(request)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        for item in reversed(run.state(RunMiddleware).with_hook("wrap_tool_call")):
            handler = partial(_wrap_tool_call, run, item, handler)
        return await handler(call)


async def _wrap_model_call(
    run: RunContext, item: Hooks, handler: ModelHandler, request: ModelRequest
) -> Reply:
    replies: list[tuple[ModelAnswer, Reply]] = []

    async def call_model() -> ModelAnswer:
        reply = await handler(request)
        usage = {name: count for name, count in asdict(reply.usage).items() if count}
        answer = ModelAnswer(copy.deepcopy(reply.blocks), reply.stop_reason, usage)
        replies.append((answer, reply))
        return answer

    failures: list[Exception] = []

    async def wrap(here: Here) -> ModelAnswer:
        call = _ModelCall(run, request, partial(here, _kept(partial(_messages, run), failures)))
        return await item.wrap_model_call(call, partial(here, _kept(call_model, failures)))

    try:
        answer = await BESIDE.run(wrap, seconds=item.seconds, visible=(ProviderError,))
        return _reply_of(answer, request, replies)
    except Exception as error:  # code of a third party
        if error in failures:
            raise
        _fail(run, item, "wrap_model_call", error)
    if replies:
        return replies[-1][1]
    if failures:
        raise failures[-1]
    return await handler(request)


def _kept(
    make: Callable[[], Awaitable[T]], failures: list[Exception]
) -> Callable[[], Awaitable[T]]:
    """Return `make`, but with its exceptions added to `failures`: they are the engine's."""

    async def kept() -> T:
        try:
            return await make()
        except Exception as error:
            failures.append(error)
            raise

    return kept


def _reply_of(
    answer: Any, request: ModelRequest, replies: list[tuple[ModelAnswer, Reply]]
) -> Reply:
    if not isinstance(answer, ModelAnswer):
        raise TypeError(f"it returned {type(answer).__name__}, not a ModelAnswer")
    for known, reply in replies:
        if answer is known:
            return reply
    blocks = json.loads(json.dumps(list(answer.blocks)))
    if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks):
        raise TypeError("the blocks of its answer are not objects with a type")
    usage = replies[-1][1].usage if replies else Usage()
    return Reply(blocks, answer.stop_reason, usage, request.model)


async def _wrap_tool_call(
    run: RunContext, item: Hooks, handler: ToolHandler, request: ToolCallRequest
) -> ToolResult:
    row = request.row
    results: list[tuple[ToolAnswer, ToolResult]] = []

    async def make_call() -> ToolAnswer:
        result = await handler(request)
        answer = ToolAnswer(_text_of(result), result.is_error)
        results.append((answer, result))
        return answer

    given = json.loads(row.edited_input or row.input)
    call = ToolCallInfo(_info(run), row.call_id, row.tool, given, str(request.effect))
    failures: list[Exception] = []

    async def wrap(here: Here) -> ToolAnswer:
        return await item.wrap_tool_call(call, partial(here, _kept(make_call, failures)))

    try:
        answer = await BESIDE.run(wrap, seconds=item.seconds)
        return _result_of(answer, results)
    except Exception as error:  # code of a third party
        if error in failures:
            raise
        _fail(run, item, "wrap_tool_call", error)
    return results[-1][1] if results else await handler(request)


def _result_of(answer: Any, results: list[tuple[ToolAnswer, ToolResult]]) -> ToolResult:
    if not isinstance(answer, ToolAnswer) or not isinstance(answer.text, str):
        raise TypeError(f"it returned {type(answer).__name__}, not a ToolAnswer with a text")
    for known, result in results:
        if answer is known:
            return result
    is_error = bool(answer.is_error)
    if not results:
        return ToolResult(answer.text, is_error=is_error, code="middleware" if is_error else "")
    made = results[-1][1]
    code = (made.code or "middleware") if is_error else ""
    return replace(made, content=answer.text, blocks=False, is_error=is_error, code=code)


def _fail(run: RunContext, item: Hooks, hook: str, error: Exception) -> None:
    """End the run, unless the middleware is to be skipped."""
    end = _end_of(run, item, hook, error)
    if end is not None:
        _leave(run, end)


def _leave(run: RunContext, end: End) -> NoReturn:
    run.leave(end)


def _end_of(run: RunContext, item: Hooks, hook: str, error: Exception) -> End | None:
    """Return how the run ends after a hook has raised `error`. None: it continues."""
    name = type(item).__name__
    if isinstance(error, EndRun) and _CODE.fullmatch(str(error.code)):
        return End(str(error.code), str(error.message)[:1000])
    extra = {"run_id": run.row.pk, "middleware": name}
    logger.error("the middleware %s failed in %s", name, hook, exc_info=error, extra=extra)
    if item.on_error == "skip":
        return None
    what = (
        f"took longer than {item.seconds:g} s"
        if isinstance(error, TimeoutError)
        else f"raised {type(error).__name__}"
    )
    return End(FAILED, f"The middleware {name} {what} in {hook}. The worker's log says more.")


class _ModelCall(ModelCall):
    """A model call for a middleware. It reads rows in the task of the driver."""

    def __init__(
        self,
        run: RunContext,
        request: ModelRequest,
        read: Callable[[], Awaitable[list[tuple[str, str]]]],
    ) -> None:
        self.run = _info(run)
        self.model = request.model
        self.system = run.head.system
        self._head = run.head
        self._read = read

    async def messages(self) -> list[dict[str, Any]]:
        return [{"role": role, "content": json.loads(text)} for role, text in await self._read()]

    async def key(self) -> str:
        head = asdict(self._head)
        del head["cache_key"], head["caches"]
        content = dump([self.model, head, await self._read()])
        return hashlib.sha256(content.encode()).hexdigest()


async def _messages(run: RunContext) -> list[tuple[str, str]]:
    def read() -> list[tuple[str, str]]:
        return list(history_since(latest_compaction(run.row.thread_id), run.row))

    return await run.in_database(read)


def _info(run: RunContext) -> RunInfo:
    row = run.row
    return RunInfo(row.pk, row.thread_id, row.owner_id, run.spec.slug, run.turn)


def _text_of(result: ToolResult) -> str:
    if result.blocks:
        return "\n".join(block.get("text", f"[{block['type']}]") for block in result.content)
    return result.content if isinstance(result.content, str) else dump(result.content)


MIDDLEWARE = (CustomMiddleware(),)
