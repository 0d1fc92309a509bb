"""The program of a helper process: it runs one statement at a time for one worker.

A worker starts it (`drivers.helper.process`) and talks to it over two pipes. The helper has no
Django, no settings and no keys: of a database it knows what the worker sends with a statement.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from agents.features.databases.drivers import operations
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import OutcomeUnknown, QueryFailed
from agents.features.databases.drivers.helper import messages
from agents.features.databases.drivers.helper.frames import Channel, Closed, encoded
from agents.features.databases.drivers.process_limits import (
    MEMORY_BYTES,
    bound_resources,
    die_with,
    end_after,
    is_worn,
)
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    from sandbox import cancellation  # half of the start of a helper


_MOST_ASKED = 256 * 1024 * 1024
_CANCEL = signal.SIGUSR1
NO_MEMORY = (
    f"The statement needs more memory than {MEMORY_BYTES // 1024**2:,} MB, which it may not have: "
    "select fewer rows, or parts of long values."
)


def main(worker: int, dialect: str) -> None:
    """Serve until the worker closes its end."""
    die_with(worker)
    bound_resources()
    channel = _take_over_pipes()
    try:
        cancel = None if dialect in operations.LIBRARIES else _listen_for_cancel()
        operations.load(dialect)
        channel.send({"ready": True})
        while True:
            request = channel.receive(_MOST_ASKED)
            answer = _answer(request, channel, cancel)
            end_after(0)
            channel.send({**answer, "worn": is_worn()})
    except Closed:
        return
    except BaseException:
        channel.send({"bug": traceback.format_exc()})
        raise


def _take_over_pipes() -> Channel:
    """Return the pipes, on other numbers than those to which libraries print."""
    channel = Channel(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return channel


def _listen_for_cancel() -> cancellation.Cancellation:
    """Take the signal on a thread: a handler would wait until the driver returns.

    A cancelled helper is not reused, so this happens once.
    """
    cancel = cancellation.Cancellation()
    signal.pthread_sigmask(signal.SIG_BLOCK, {_CANCEL})

    def wait() -> None:
        signal.sigwait({_CANCEL})
        cancel.cancel()

    threading.Thread(target=wait, name="vel-cancel", daemon=True).start()
    return cancel


def _answer(
    request: dict[str, Any], channel: Channel, cancel: cancellation.Cancellation | None
) -> dict[str, Any]:
    """Do one operation. `failed` has the message and the code of a QueryFailed."""
    end_after(request["seconds"])
    target = messages.target_from_json(request["target"])
    own = messages.own_from_json(request["own"])
    try:
        if request["do"] == "query":
            result = operations.query(target, request["text"], request["params"], own, cancel)
        elif request["do"] == "describe":
            result = operations.describe(target, request["what"], request["table"], own, cancel)
        else:
            keep = None if request["do"] == "try" else _keeper(channel, request["commit_seconds"])
            changes = operations.write(
                target, request["text"], request["params"], own, cancel, keep
            )
            return {} if keep else _bounded({"changes": messages.changes_to_json(changes)}, target)
        return _bounded({"result": messages.result_to_json(result)}, target)
    except OutcomeUnknown as problem:
        return {"unknown": str(problem)}
    except QueryFailed as problem:
        return {"failed": [str(problem), problem.code]}
    except MemoryError:
        return {"failed": [NO_MEMORY, "memory"]}


def _bounded(answer: dict[str, Any], target: Any) -> dict[str, Any]:
    """Return the answer. Raises QueryFailed if the worker would not read it."""
    if len(encoded(answer)) + 100 > messages.longest(target):
        raise QueryFailed("The result is too long: select fewer columns.", "too_much")
    return answer


def _keeper(channel: Channel, commit_seconds: float) -> Callable[[Changes], bool]:
    """Ask the worker whether to keep the changes."""

    def keep(changes: Changes) -> bool:
        channel.send({"changes": messages.changes_to_json(changes)})
        wanted: bool = channel.receive(_MOST_ASKED)["keep"]
        if wanted:
            end_after(commit_seconds)
        return wanted

    return keep


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
