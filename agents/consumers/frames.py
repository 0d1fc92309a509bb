"""What a client may say on a run's socket, and the answers that are not events.

Every frame is answered by one `accepted` or one `error`, with the frame's own `ref` where it has
one. Events have a `seq`; answers have none.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from agents.services.errors import InvalidRequest

MAX_FRAME_BYTES = 512 * 1024
"""Daphne itself ends the connection at a megabyte. Longer messages go through the REST API."""
MAX_PROBLEM_CHARACTERS = 300
MAX_INTEGER = 2**63


def _storable(value: Any) -> Any:
    """Refuse what one of the databases, or JSON itself, cannot hold."""
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


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ref: Text | None = Field(None, max_length=100)
    """Comes back in the answer."""
    csrf: str = Field("", max_length=200)
    """The page's CSRF token. Needed with a session."""


class MessageFrame(_Frame):
    """A message to the run's thread. However often it comes with the same `key`, it counts once."""

    type: Literal["message"]
    text: Text
    key: Text | None = Field(None, min_length=1, max_length=200)


class DecideFrame(_Frame):
    """An answer to a request for approval, bound to the digest of what was shown."""

    type: Literal["decide"]
    approval_id: Text = Field(max_length=64)
    digest: Text = Field(max_length=64)
    decision: Text = Field(max_length=20)
    input: Annotated[dict[str, JsonValue], AfterValidator(_storable)] | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _runs_what_was_shown(self) -> DecideFrame:
        if self.input is not None and self.decision != "edit":
            raise ValueError("only the decision `edit` takes an input")
        return self


class MemoryDecisionFrame(_Frame):
    """An answer to a `memory_edit_request`, bound to what was shown by the request's id."""

    type: Literal["memory_edit_decision"]
    request_id: Text = Field(max_length=64)
    decision: Literal["approve", "reject", "edit"]
    edited_content: Text | None = None

    @model_validator(mode="after")
    def _writes_what_was_shown(self) -> MemoryDecisionFrame:
        if (self.edited_content is not None) != (self.decision == "edit"):
            raise ValueError("the decision `edit`, and no other, takes edited_content")
        return self


class CancelFrame(_Frame):
    """End the run."""

    type: Literal["cancel"]
    reason: Text = Field("", max_length=1000)


ClientFrame = MessageFrame | DecideFrame | MemoryDecisionFrame | CancelFrame
_FRAMES: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="type")])


def parse_frame(text: str) -> ClientFrame:
    """The frame in `text`. Raises `InvalidRequest` that says what does not fit."""
    size = len(text.encode())
    if size > MAX_FRAME_BYTES:
        raise InvalidRequest(
            f"The frame has {size:,} bytes and may have {MAX_FRAME_BYTES:,}: use the REST API.",
            code="frame_too_large",
        )
    try:
        return _FRAMES.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        problem = f"{place}: {first['msg']}" if place else first["msg"]
        # The message may quote the frame.
        raise InvalidRequest(
            f"The frame does not fit. {problem[:MAX_PROBLEM_CHARACTERS]}", code="bad_frame"
        ) from None


def accepted(ref: str | None = None, **what: str) -> str:
    """The answer to a frame that was carried out."""
    return _answer("accepted", ref, what)


def refused(code: str, message: str, ref: str | None = None) -> str:
    """The answer to a frame that was not. Nothing was changed."""
    return _answer("error", ref, {"code": code, "message": message})


def _answer(kind: str, ref: str | None, content: dict[str, str]) -> str:
    return json.dumps({"type": kind, **({} if ref is None else {"ref": ref}), **content})
