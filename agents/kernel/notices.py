"""Notices: facts for people who may not look at a page of Vel.

The code that stores a fact announces it in the same transaction, for example when a run requests
approval. Features that inform people list functions in `notices.LISTENERS`; each receives the
notice. A message is often sent later and more than once. Therefore a notice has only an id, and its
kind creates the message when it is sent. Features list their kinds in `notices.KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured

from agents.kernel.features import entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A fact to announce. It names the agent, or the version that the run has."""

    type: str
    """The type of the notice's kind."""
    subject_id: str
    """The id of the row that the notice is about. The kind knows the model."""
    agent_id: str = ""
    agent_version_id: int | None = None
    run_id: str = ""
    """The id of the run that the notice is about.

    A listener deletes its data together with the run.
    """
    for_workers: bool = True
    """Whether workers are known to run. False for a run in the process of one command."""


@dataclass(frozen=True, slots=True)
class Message:
    """The content of a notice for people.

    It contains no secrets, because receivers rarely protect it.
    """

    data: Mapping[str, Any]
    """The content for programs, as JSON."""
    subject: str
    """The subject, one line of text."""
    lines: tuple[str, ...]


class NoticeKind:
    """The base class of kinds of notices. A kind creates the message of a notice."""

    type: ClassVar[str]
    """The unique type, for example `schedule.not_started`."""
    field: ClassVar[str]
    """The name of `Message.data` in the JSON for programs."""
    model: ClassVar[str] = ""
    """The model of the subject, such as `agents.Run`, for the admin."""
    no_longer: ClassVar[str] = "The message is no longer needed."
    """The reason for not sending a notice if `is_needed` is false."""

    def is_needed(self, subject_id: str) -> bool:
        """Return whether people still need the message."""
        raise NotImplementedError

    def message(self, subject_id: str) -> Message | None:
        """Return the message, None if the row that it is about was deleted."""
        raise NotImplementedError


Listener = Callable[[Notice], None]
_kinds: dict[str, NoticeKind] = {}
_listeners: list[Listener] = []
_is_loaded: list[bool] = []
_loading = Lock()


def announce(notice: Notice) -> None:
    """Pass a notice to all listeners. Call it in the transaction that stores the fact."""
    _load()
    for listener in _listeners:
        listener(notice)


def kind_of(type: str) -> NoticeKind | None:
    """Return the kind of notices with this type, None if its feature was removed."""
    _load()
    return _kinds.get(type)


def _load() -> None:
    """Find kinds and listeners, once in each process."""
    if _is_loaded:
        return
    with _loading:
        if not _is_loaded:
            _find()
            _is_loaded.append(True)


def _find() -> None:
    found: dict[str, NoticeKind] = {}
    for kind in entries("notices", "KINDS"):
        other = found.setdefault(kind.type, kind())
        if type(other) is not kind:
            raise ImproperlyConfigured(
                f"{type(other).__module__}.{type(other).__qualname__} and "
                f"{kind.__module__}.{kind.__qualname__} both have type = {kind.type!r}. Give one "
                "of them another type."
            )
    _kinds.update(found)
    _listeners.extend(entries("notices", "LISTENERS"))
