"""Parsing of the frames that a client sends on a run's socket."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter, ValidationError

from agents.consumers.run_frames import FRAMES
from agents.doors.websockets.frames import Frame
from agents.kernel.features import collect
from agents.services.errors import InvalidRequest

MAX_FRAME_BYTES = 512 * 1024
"""Daphne closes the connection at one megabyte. Longer messages use the REST API."""
MAX_PROBLEM_CHARACTERS = 300


@lru_cache(maxsize=1)
def _all_frames() -> TypeAdapter[Frame]:
    """Return the adapter of all frames: Vel's, and those of features (`frames.FRAMES`)."""
    kinds = (*FRAMES, *(kind for _, kind in collect("frames", "FRAMES", skip_broken=True)))
    union: Any = Union[kinds]  # noqa: UP007  # known only now
    return TypeAdapter(Annotated[union, Field(discriminator="type")])


def parse_frame(text: str) -> Frame:
    """Return the frame in `text`. Raises `InvalidRequest` with the problem."""
    size = len(text.encode())
    if size > MAX_FRAME_BYTES:
        raise InvalidRequest(
            f"The frame has {size:,} bytes and may have {MAX_FRAME_BYTES:,}: use the REST API.",
            code="frame_too_large",
        )
    try:
        return _all_frames().validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        problem = f"{place}: {first['msg']}" if place else first["msg"]
        # The message may quote the frame.
        raise InvalidRequest(
            f"The frame does not fit. {problem[:MAX_PROBLEM_CHARACTERS]}", code="bad_frame"
        ) from None
