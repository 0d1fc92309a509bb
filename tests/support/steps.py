"""Count the steps of coroutines, to do an action at the n-th one.

A step is the work of a task between two awaits that suspend it. It does not depend on time.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any
from weakref import WeakKeyDictionary


class Steps:
    """Calls `action` after the step `at`, counted over all watched tasks.

    The action runs between two steps, like a signal or a callback: no task cancels itself.
    """

    def __init__(self, at: int, action: Callable[[], object]) -> None:
        self.count = 0
        self._actions = {at: action}
        self._watched: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()

    def later(self, steps: int, action: Callable[[], object]) -> None:
        """Call another action after that many more steps."""
        self._actions[self.count + steps] = action

    def tasks(self, name: str) -> list[asyncio.Task[Any]]:
        """Return the watched tasks of a coroutine function, by its name."""
        return [task for task, function in self._watched.items() if function == name]

    def next(self) -> None:
        self.count += 1
        if (action := self._actions.get(self.count)) is not None:
            asyncio.get_running_loop().call_soon(action)

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end and count its steps."""
        return await _stepped(coroutine, self.next)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count the steps of all tasks that the running loop creates from now on."""
        loop.set_task_factory(self._task)

    def _task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(self.run(coroutine), loop=loop, **more)
        task.add_done_callback(lambda _: coroutine.close())  # cancelled before it started
        self._watched[task] = coroutine.__name__
        return task


@types.coroutine
def _stepped(
    coroutine: Coroutine[Any, Any, Any], before_step: Callable[[], None]
) -> Generator[Any, Any, Any]:
    value, error = None, None
    while True:
        before_step()
        try:
            awaited = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as end:
            return end.value
        value, error = None, None
        try:
            value = yield awaited
        except BaseException as thrown:  # noqa: BLE001  # goes to the coroutine
            error = thrown
