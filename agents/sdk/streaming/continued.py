"""The result of `resume` and `reject`: a stream that can be awaited instead."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

from agents.sdk.errors import RunInterrupted
from agents.sdk.streaming.stream import StreamEvent

Item = TypeVar("Item")
Result = TypeVar("Result", covariant=True)


class Continued(AsyncGenerator[Item, None], Coroutine[Any, Any, Result], Generic[Item, Result]):
    """A run that continues when you use this object, once.

    `async for` yields the events of the run, and `await` returns its result. `asyncio.run` and
    `asyncio.create_task` accept the object as a coroutine.
    """

    def __init__(
        self,
        stream: AsyncGenerator[Item, None],
        wait: Callable[[], Coroutine[Any, Any, Result]],
    ) -> None:
        self._stream = stream
        self._wait = wait
        self._waiting: Coroutine[Any, Any, Result] | None = None

    def __await__(self) -> Generator[Any, Any, Result]:
        return self._wait().__await__()

    def send(self, value: Any) -> Any:
        self._waiting = self._waiting or self._wait()
        return self._waiting.send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        self._waiting = self._waiting or self._wait()
        return self._waiting.throw(_error(typ, val, tb))

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()

    async def asend(self, value: None) -> Item:
        return await self._stream.asend(value)

    async def athrow(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Item:
        return await self._stream.athrow(_error(typ, val, tb))

    async def aclose(self) -> None:
        await self._stream.aclose()


async def answer_of(events: AsyncGenerator[StreamEvent, None], session_id: str) -> Any:
    """Return the final answer in a stream of events. Raises the errors of `DeepAgent.run`."""
    interrupts: dict[str, StreamEvent] = {}
    async for item in events:
        if item.type == "interrupt":
            interrupts[item.metadata["approval_id"]] = item
        elif item.type == "decision":
            interrupts.pop(item.metadata.get("approval_id", ""), None)
        elif item.type == "end":
            return item.metadata.get("output", item.content)
    raise RunInterrupted(session_id, list(interrupts.values()))


def _error(
    typ: type[BaseException] | BaseException,
    val: BaseException | object,
    tb: TracebackType | None,
) -> BaseException:
    """Return the exception for the arguments of `throw` in their older form."""
    error = val if isinstance(val, BaseException) else typ
    made = error if isinstance(error, BaseException) else error(*(() if val is None else (val,)))
    return made if tb is None else made.with_traceback(tb)
