"""Notices: what people may want to hear of although they look at no page of Vel.

The code that stores such a fact announces it in the same transaction, for example when a run asks a
person. Features that inform people list functions in `notices.LISTENERS`; each gets the notice. A
message is often sent later and more than once. Therefore a notice has only an id, and its kind
says what the message contains when it is sent. Features list their kinds in `notices.KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that has happened. It names the agent, or the version that the run has."""

    type: str
    """The type of its kind."""
    subject_id: str
    """The row that it is about, as the kind knows it."""
    agent_id: str = ""
    agent_version_id: int | None = None
    run_id: str = ""
    """The run that it is about. A listener deletes what it stored together with the run."""
    for_workers: bool = True
    """Whether workers are known to run. False for the run of one process."""


@dataclass(frozen=True, slots=True)
class Message:
    """What people get. It contains no secrets: receivers are rarely built to keep them."""

    data: Mapping[str, Any]
    """For programs, as JSON."""
    subject: str
    """One line."""
    lines: tuple[str, ...]


class NoticeKind:
    """The base class of kinds: which message belongs to a notice."""

    type: ClassVar[str]
    """As `schedule.not_started`."""
    field: ClassVar[str]
    """The name of `Message.data` in the JSON that programs get."""
    model: ClassVar[str] = ""
    """The model of the subject, as `agents.Run`, so that the admin can show it."""
    no_longer: ClassVar[str] = "Nobody needs to hear of it any more."
    """Why a notice for which `is_needed` is false is not sent."""

    def is_needed(self, subject_id: str) -> bool:
        """Whether people still need to hear of it."""
        raise NotImplementedError

    def message(self, subject_id: str) -> Message | None:
        """Return the message, or None if its subject was deleted."""
        raise NotImplementedError


Listener = Callable[[Notice], None]
_kinds: dict[str, NoticeKind] = {}
_listeners: list[Listener] = []
_is_loaded: list[bool] = []
_loading = Lock()


def announce(notice: Notice) -> None:
    """Pass a notice to all listeners, in the transaction of what it tells."""
    _load()
    for listener in _listeners:
        listener(notice)


def kind_of(type: str) -> NoticeKind | None:
    """Return the kind of notices with this type. None: the feature that had it was removed."""
    _load()
    return _kinds.get(type)


def _load() -> None:
    """Find kinds and listeners, in this process once."""
    if _is_loaded:
        return
    with _loading:
        if not _is_loaded:
            _find()
            _is_loaded.append(True)


def _find() -> None:
    # Those of features that are still part of the app agents.
    own = [(None, kind) for kind in import_module("agents.services.approvals.notices").KINDS]
    found: dict[str, NoticeKind] = {}
    for _, kind in [*own, *collect("notices", "KINDS")]:
        other = found.setdefault(kind.type, kind())
        if type(other) is not kind:
            raise ImproperlyConfigured(
                f"{type(other).__module__}.{type(other).__qualname__} and "
                f"{kind.__module__}.{kind.__qualname__} both have type = {kind.type!r}: give one "
                "of them a type of its own."
            )
    _kinds.update(found)
    _listeners.extend(listener for _, listener in collect("notices", "LISTENERS"))
