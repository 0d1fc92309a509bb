"""Hooks of features in the transactions that change the row of a run, in every process.

Web processes also start, end, cancel and resume runs, but have no middleware of a run. Therefore a
feature lists subclasses of `RowHooks` in its `row_hooks.ROW_HOOKS`. A process imports them before
its first change of a run's row.

Each hook runs inside the transaction of the change, under the lock of the run's row, and an
exception rolls back the whole change. A hook must only write rows, because a transaction can be
repeated. It must lock the clock of the run first, then its own rows, in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured

from agents.kernel.features import entries
from agents.models import Run, RunClock, Thread

Protects = Callable[[str], bool]


class RowHooks:
    """The base class of hooks. A hook that a class does not override costs nothing."""

    order: ClassVar[int] = 1000
    """The position among the hooks.

    Lower numbers come first, equal ones by the name of the class.
    """
    waits_for: ClassVar[str] = ""
    """The `Run.wait_reason` of runs that wait for this feature.

    Each reason belongs to one class.
    """

    def started(self, run: Run) -> Mapping[str, Any]:
        """Return fields for `run.started`, when a worker claims the run for the first time."""
        return {}

    def released(self, run_id: str, clock: RunClock) -> None:
        """Free what the run holds, because its worker has released it or it was cancelled.

        Also called when a worker claims the run, because a lost worker has released nothing. No
        call of the run to a tool or a model is active. Values in `clock` may be out of date, but it
        is certain that no other worker has the lease.
        """

    def ended(self, run: Run, *, wake: bool) -> None:
        """Handle a run that has ended: `run.status` and its last event are already stored.

        The caller has locked the rows of the run and of its parent, if it has one. With `wake`, the
        parent continues if it waited for this run. Without `wake`, the parent is also ending.
        """

    def resumed(self, run: Run, *, had_ended: bool) -> None:
        """Handle a run that a person resumes. The caller saves `run` afterwards.

        `had_ended`: the run had failed. Otherwise it was queued, or its process had died.
        """

    def stop_waiting(self, run: Run) -> None:
        """Handle a run that waits for `waits_for` and is about to end instead."""

    def time_over(self, run: Run) -> str:
        """Return the reason for the event `run.resumed`, "" for the default.

        Called when a run that waits for `waits_for` continues because its `wake_at` has passed.
        """
        return ""

    def copied(self, run: Run, copy: Run) -> None:
        """Handle the copy of a run in a fork of the thread. A copy is never executed."""

    def forked(self, source: Run, turn: int, thread: Thread) -> None:
        """Handle a new `thread` with the conversation of `source` up to the turn `turn`."""

    def renamed(self, thread: Thread) -> None:
        """Handle that a person has given a thread a title.

        The row of the thread is locked. No row of a run is locked.
        """

    def check_directories(
        self, directories: Sequence[str], workspace_path: str, protects: Protects
    ) -> None:
        """Raise `ServiceError` if a thread cannot use these directories of this machine.

        `protects` returns whether agents cannot change a path, relative to `workspace_path`.
        """


_NAMES = (
    "started",
    "released",
    "ended",
    "resumed",
    "copied",
    "forked",
    "renamed",
    "check_directories",
)
_registered: list[RowHooks] = []
_by_name: dict[str, list[RowHooks]] = {name: [] for name in _NAMES}
_by_reason: dict[str, RowHooks] = {}
_is_loaded: list[bool] = []
_loading = Lock()


def register(hooks: type[RowHooks]) -> None:
    """Add the hooks of a feature. Does nothing for a class that is already registered.

    Raises `ImproperlyConfigured` if another class has the same `waits_for`.
    """
    if any(type(known) is hooks for known in _registered):
        return
    other = _by_reason.get(hooks.waits_for)
    if other is not None:
        raise ImproperlyConfigured(
            f"{_name(other)} and {hooks.__module__}.{hooks.__qualname__} both have waits_for = "
            f"{hooks.waits_for!r}: give one of them another reason."
        )
    _registered.append(hooks())
    _sort()


def _load() -> None:
    """Register the hooks of the features, once in each process.

    Other threads that need a hook at this time wait, because no run may end without the hooks.
    """
    if _is_loaded:
        return
    with _loading:
        if _is_loaded:
            return
        for hooks in entries("row_hooks", "ROW_HOOKS"):
            register(hooks)
        _is_loaded.append(True)


def unregister(hooks: type[RowHooks]) -> None:
    """Remove the hooks of a feature, for tests."""
    _registered[:] = [known for known in _registered if type(known) is not hooks]
    _sort()


def _sort() -> None:
    _registered.sort(key=lambda hooks: (hooks.order, _name(hooks)))
    for name in _NAMES:
        base = getattr(RowHooks, name)
        _by_name[name] = [hooks for hooks in _registered if getattr(type(hooks), name) is not base]
    _by_reason.clear()
    _by_reason.update((hooks.waits_for, hooks) for hooks in _registered if hooks.waits_for)


def _name(hooks: RowHooks) -> str:
    return f"{type(hooks).__module__}.{type(hooks).__qualname__}"


def started(run: Run) -> dict[str, Any]:
    _load()
    fields: dict[str, Any] = {}
    for hooks in _by_name["started"]:
        fields |= hooks.started(run)
    return fields


def released(run_id: str, clock: RunClock) -> None:
    _load()
    for hooks in _by_name["released"]:
        hooks.released(run_id, clock)


def ended(run: Run, *, wake: bool = True) -> None:
    _load()
    for hooks in _by_name["ended"]:
        hooks.ended(run, wake=wake)


def resumed(run: Run, *, had_ended: bool) -> None:
    _load()
    for hooks in _by_name["resumed"]:
        hooks.resumed(run, had_ended=had_ended)


def stop_waiting(run: Run) -> None:
    _load()
    hooks = _by_reason.get(run.wait_reason)
    if hooks is not None:
        hooks.stop_waiting(run)


def time_over(run: Run) -> str:
    _load()
    hooks = _by_reason.get(run.wait_reason)
    return hooks.time_over(run) if hooks is not None else ""


def copied(run: Run, copy: Run) -> None:
    _load()
    for hooks in _by_name["copied"]:
        hooks.copied(run, copy)


def forked(source: Run, turn: int, thread: Thread) -> None:
    _load()
    for hooks in _by_name["forked"]:
        hooks.forked(source, turn, thread)


def renamed(thread: Thread) -> None:
    _load()
    for hooks in _by_name["renamed"]:
        hooks.renamed(thread)


def check_directories(directories: Sequence[str], workspace_path: str, protects: Protects) -> bool:
    """Let all features check the directories. Return whether any feature reads them."""
    _load()
    for hooks in _by_name["check_directories"]:
        hooks.check_directories(directories, workspace_path, protects)
    return bool(_by_name["check_directories"])
