"""Asking a helper process to run a statement, and stopping it in time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from agents.features.databases.drivers.address import dialect_of, without_secrets
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import OutcomeUnknown, QueryFailed
from agents.features.databases.drivers.helper import messages
from agents.features.databases.drivers.helper.frames import Closed, Late, TooLong
from agents.features.databases.drivers.helper.process import Helper
from agents.features.databases.drivers.operations import LIBRARIES
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.pools import Pool, pool_for
from agents.features.databases.drivers.stopping import CANCEL_SECONDS
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

COMMIT_SECONDS = 60.0
"""Limit for the commit of an approved change."""
_SERVER_SECONDS = 20.0
"""Extra time for servers: to connect, and to end a cancelled statement."""
_FROZEN_SECONDS = 5.0
"""Added to the helper's own timer, which ends it if its worker is frozen."""

Params = Mapping[str, Any] | None


def ask_for_rows(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation, request: dict[str, Any]
) -> QueryResult:
    """Return the rows of a helper's answer. Blocks. Raises QueryFailed."""
    return messages.result_from_json(_ask(target, own, cancel, request, None)["result"])


def ask_to_try(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation, text: str, params: Params
) -> Changes:
    """Return the changes that a statement would make. Blocks. Raises QueryFailed."""
    request = {"do": "try", "text": text, "params": params}
    return messages.changes_from_json(_ask(target, own, cancel, request, None)["changes"])


def ask_to_write(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation, text: str, params: Params,
    keep: Callable[[Changes], bool],
) -> Changes:  # fmt: skip
    """Run a statement, and commit it if `keep` returns True for its changes.

    Blocks. Raises QueryFailed; the database is unchanged then, except after `OutcomeUnknown`.
    """
    request = {
        "do": "write", "text": text, "params": params,
        "commit_seconds": COMMIT_SECONDS + _FROZEN_SECONDS,
    }  # fmt: skip
    seen: list[Changes] = []

    def decide(changes: Changes) -> bool:
        seen.append(changes)
        return keep(changes)

    _ask(target, own, cancel, request, decide)
    return seen[0]


def _ask(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation, request: dict[str, Any],
    keep: Callable[[Changes], bool] | None,
) -> dict[str, Any]:  # fmt: skip
    try:
        with _pool_of(target).connection(target.statement_seconds, cancel) as helper:
            answer = _Operation(helper, target, own, cancel).run(request, keep)
            # After a plain failure the process is reused.
            helper.worn = helper.worn or answer["worn"] or _failed_to_connect(answer)
        if "unknown" in answer:
            raise OutcomeUnknown(answer["unknown"])
        if "failed" in answer:
            raise QueryFailed(*answer["failed"])
        return answer
    except QueryFailed as problem:
        problem.args = (without_secrets(str(problem), target),)
        raise problem from None


def _failed_to_connect(answer: dict[str, Any]) -> bool:
    return answer.get("failed", ("", ""))[1] == "connection"


def _pool_of(target: DatabaseTarget) -> Pool[Helper]:
    """Return the pool of the target. A helper serves one target only."""
    dialect = dialect_of(target)
    key = (
        "helper", target.name, target.url, str(target.statement_seconds),
        str(target.allow_privileged),
    )  # fmt: skip
    return pool_for(key, lambda: Pool(lambda: Helper(dialect), lambda _: None))


class _Operation:
    """One operation of a helper, until it has answered or was ended."""

    def __init__(
        self, helper: Helper, target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation
    ) -> None:
        self._helper = helper
        self._target = target
        self._own = own
        self._cancel = cancel
        self._library = dialect_of(target) in LIBRARIES
        self._seconds = target.statement_seconds + (0 if self._library else _SERVER_SECONDS)
        self._keeping = False
        self._lock = threading.Lock()

    def run(
        self, request: dict[str, Any], keep: Callable[[Changes], bool] | None
    ) -> dict[str, Any]:
        """Return the helper's last answer. `keep` decides on the changes. Raises QueryFailed."""
        forget = self._cancel.on_cancel(self._stop)
        try:
            deadline = time.monotonic() + self._seconds
            answer = self._talk(self._whole(request), deadline)
            if keep is not None and "changes" in answer:
                answer = self._decide(answer, keep, deadline)
            return answer
        except (Late, Closed, TooLong) as problem:
            self._helper.kill()
            raise self._why(problem) from None
        except BaseException:
            self._helper.kill()
            raise
        finally:
            forget()

    def _whole(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            **request,
            "target": messages.target_to_json(self._target),
            "own": messages.own_to_json(self._own),
            "seconds": self._seconds + _FROZEN_SECONDS,
        }

    def _talk(self, message: dict[str, Any], deadline: float) -> dict[str, Any]:
        try:
            self._helper.send(message, deadline)
        except TypeError as problem:
            raise QueryFailed(str(problem), "invalid") from None
        return self._helper.receive(messages.longest(self._target), deadline)

    def _decide(
        self, answer: dict[str, Any], keep: Callable[[Changes], bool], deadline: float
    ) -> dict[str, Any]:
        refused: QueryFailed | None = None
        try:
            wanted = keep(messages.changes_from_json(answer["changes"]))
        except QueryFailed as problem:
            wanted, refused = False, problem
        if wanted:
            with self._lock:
                # A commit is not interrupted, because its outcome would be unknown.
                self._keeping = not self._cancel.cancelled
            if not self._keeping:
                text = "The call was cancelled; nothing was written."
                wanted, refused = False, QueryFailed(text, "cancelled")
        if wanted:
            deadline = time.monotonic() + COMMIT_SECONDS
        answer = self._talk({"keep": wanted}, deadline)
        if refused is not None:
            raise refused
        return answer

    def _stop(self) -> None:
        """Stop after a cancellation. Runs in any thread and must not block."""
        with self._lock:
            if self._keeping:
                return
            if self._library:
                self._helper.kill()
                return
            self._helper.tell_to_cancel()
        # The helper cuts the connection if the server does not react. This is the last resort.
        timer = threading.Timer(2 * CANCEL_SECONDS, self._helper.kill)
        timer.daemon = True
        timer.start()

    def _why(self, problem: Exception) -> QueryFailed:
        if self._keeping:
            return OutcomeUnknown(
                f"{self._target.name} did not answer to COMMIT: the change may have been made. "
                "Look at the rows before you repeat it."
            )
        if self._cancel.cancelled:
            return QueryFailed("The call was cancelled.", "cancelled")
        if isinstance(problem, TooLong):
            return QueryFailed("The result is too long: select fewer columns.", "too_much")
        ending = None if isinstance(problem, Late) else self._helper.ending()
        if isinstance(problem, Late) or ending == signal.SIGALRM:
            return QueryFailed(
                f"The statement was stopped ({self._target.statement_seconds:g} s at most).",
                "timeout",
            )
        how = f"by {signal.Signals(ending).name}" if ending else "without an answer"
        return QueryFailed(
            f"The process that ran the statement ended {how}. It may have reached the memory limit "
            "of a statement: select fewer rows, or parts of long values.",
            "memory",
        )
