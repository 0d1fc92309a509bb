"""Frames that a client can send on a run's socket, and the responses.

Each frame gets one `accepted` or `error` response, with the `ref` of the frame if it has one.
Only events have a `run_id` and a `seq`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
)

from agents.events.stored import StoredEvent
from agents.kernel.features import collect
from agents.models import Run, TokenScope
from agents.selectors.visible import Person

MAX_INTEGER = 2**63


def _storable(value: Any) -> Any:
    """Reject texts that a database or JSON cannot store."""
    match value:
        case str() if "\x00" in value:
            raise ValueError("holds a NUL character")
        case float() if not math.isfinite(value):
            raise ValueError("holds a number that JSON does not know")
        case int() if not -MAX_INTEGER <= value < MAX_INTEGER:
            raise ValueError("holds a number of more than 64 bits")
        case dict():
            for name, item in value.items():
                _storable(name)
                _storable(item)
        case list():
            for item in value:
                _storable(item)
    return value


Text = Annotated[str, AfterValidator(_storable)]
Json = Annotated[dict[str, JsonValue], AfterValidator(_storable)]


class Frame(BaseModel):
    """A frame from a client. A subclass has a `Literal` for its `type`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ref: Text | None = Field(None, max_length=100)
    """Returned in the response."""
    csrf: str = Field("", max_length=200)
    """The page's CSRF token, required with a session."""
    scope: ClassVar[TokenScope] = TokenScope.RUN
    """The scope that a token needs for this frame."""

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        """Process the frame and return the content of the response.

        `user` can watch `run`. Raises `ServiceError`.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AfterEvents:
    """Additional frames of a feature after events of these types (`frames.AFTER_EVENTS`).

    `frames` returns them as JSON texts, for a person who can watch the run. Each has the `seq` of
    its event, and no `run_id`: only events have both.
    """

    types: frozenset[str]
    frames: Callable[[StoredEvent, Person], list[str]]
    again: Callable[[str, int, Person], list[str]]
    """Return the frames to send again. Gets a run's id, the seq of the last event that the client
    has, and the user.

    The client may have lost the frames of that event, and earlier frames that it must still show.
    """


@lru_cache(maxsize=1)
def after_events() -> Mapping[str, Sequence[AfterEvents]]:
    """Return the frames of features by event type. Most events have none."""
    found: dict[str, list[AfterEvents]] = {}
    for entry in _entries():
        for name in entry.types:
            found.setdefault(name, []).append(entry)
    return found


def frames_again(run_id: str, after: int, user: Person) -> list[str]:
    """Return the frames of features for a client that has the events of a run up to `after`."""
    return [frame for entry in _entries() for frame in entry.again(run_id, after, user)]


@lru_cache(maxsize=1)
def _entries() -> Sequence[AfterEvents]:
    return [entry for _, entry in collect("frames", "AFTER_EVENTS", skip_broken=True)]


def accepted(ref: str | None = None, **what: str) -> str:
    """Return the response to a processed frame."""
    return _answer("accepted", ref, what)


def refused(code: str, message: str, ref: str | None = None) -> str:
    """Return the response to a refused frame, which has changed nothing."""
    return _answer("error", ref, {"code": code, "message": message})


def _answer(kind: str, ref: str | None, content: dict[str, str]) -> str:
    return json.dumps({"type": kind, **({} if ref is None else {"ref": ref}), **content})
