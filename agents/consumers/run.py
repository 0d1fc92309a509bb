"""The socket of one run: its events, and the frames that a person sends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, Union, cast, get_args
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DatabaseError
from pydantic import Field, TypeAdapter, ValidationError

from agents.client_address import client_address
from agents.disk_space import full_disk
from agents.doors.websockets.base import (
    BAD_REQUEST,
    INTERNAL_ERROR,
    NOT_FOUND,
    UNAUTHENTICATED,
    Consumer,
    Credentials,
    Refused,
    person_of,
    reader_of,
)
from agents.doors.websockets.frames import (
    Frame,
    Text,
    accepted,
    after_events,
    frames_again,
    refused,
)
from agents.events.read import MAX_SEQ, RunNotFound
from agents.events.stored import StoredEvent
from agents.events.tail import tail
from agents.events.tree import MAX_POSITIONS, follow_tree
from agents.kernel.features import collect
from agents.models import Door, Run, TokenScope
from agents.selectors.visible import Person, watchable_runs_for
from agents.services.audit import Origin, acting
from agents.services.errors import (
    Conflict,
    InvalidRequest,
    NoSpace,
    NotAllowed,
    NotFound,
    ServiceError,
)
from agents.services.request_limits import count_request
from agents.services.runs.control import cancel_for
from agents.services.runs.start import RunRequest, create_run

log = logging.getLogger(__name__)

RECHECK_SECONDS = 10.0
"""Maximum age in seconds of the last permission check when an event is sent."""


Tree = Literal["", "all", "brief"]


@dataclass(frozen=True, slots=True)
class _Wish:
    """The requested events: the seq to start after for each run, and the mode for subagents."""

    positions: dict[str, int] = field(default_factory=dict)
    tree: Tree = ""


class RunConsumer(Consumer):
    """The socket `ws/runs/<id>/?after=N`: all events after N, then each new event.

    With `tree=all` it includes events of subagents, each after the seq in `at=ID:N`. With
    `tree=brief` it includes only events that change the status of subagents. Frames from the client
    are for the run itself.
    A client that connects again gets the frames of pending requests again, before the events.
    The socket stays open when the run ends, since a failed run can be resumed. Close codes 4400
    (invalid `after`, `tree` or `at`), 4401 (not authenticated, or no longer), 4403 (token without
    the scope) and 4404 (no such run for this person) are final: a client should not retry. 4429
    (too many sockets or attempts) and 4503 (the server is full) follow an error frame with the
    reason. 4500 is an internal error.
    """

    async def start(self) -> None:
        self._run_id: str = self.scope["url_route"]["kwargs"]["run_id"]
        wish = _wish(self._run_id, self.scope["query_string"])
        if wish is None:
            raise Refused(BAD_REQUEST)
        person = await self.admit()
        if not await database_sync_to_async(_is_watchable)(self._run_id, person):
            raise Refused(NOT_FOUND)
        self._checked_at = time.monotonic()
        self._following = asyncio.create_task(self._follow(wish))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._following is None:
            return  # refused, and about to be closed
        ref = None
        try:
            if text_data is None:
                raise InvalidRequest("Frames are JSON in text, not binary.", code="bad_frame")
            frame = parse_frame(text_data)
            ref = frame.ref
            self.credentials.check_csrf(frame.csrf)
            user = await person_of(self.credentials, frame.scope)
            if not user.is_authenticated:
                await self.close(UNAUTHENTICATED)
                return
            with acting(partial(self._origin, user)):
                result = await database_sync_to_async(self._carry_out)(frame, user)
            answer = accepted(ref, **result)
        except ServiceError as error:
            answer = refused(error.code, error.message, ref)
        except (DatabaseError, OSError) as error:
            text = full_disk(error)
            if not text:
                raise
            answer = refused(NoSpace.code, text, ref)
        await self.send(text_data=answer)

    def _carry_out(self, frame: Frame, user: AbstractBaseUser) -> dict[str, str]:
        token = self.credentials.token
        count_request(user.pk, token.pk if token is not None else None)
        rows = watchable_runs_for(user).select_related("thread__agent")
        run = rows.filter(pk=self._run_id).first()
        if run is None:
            raise NotFound(f"There is no run {self._run_id!r} that you may see.")
        return frame.carry_out(run, user)

    def _origin(self, user: Person) -> Origin:
        meta = self.meta
        address = client_address(meta["REMOTE_ADDR"], meta["HTTP_X_FORWARDED_FOR"])
        return Origin(Door.SOCKET, address, user, self.credentials.name)

    def _events(self, wish: _Wish) -> AsyncGenerator[StoredEvent, None]:
        if not wish.tree:
            after = wish.positions[self._run_id]
            return tail.follow_stored(self._run_id, after=after, until_end=False)
        return follow_tree(
            self._run_id,
            positions=wish.positions,
            brief=wish.tree == "brief",
            until_end=False,
            may_follow=self._may_follow,
        )

    async def _may_follow(self, run_id: str) -> bool:
        """Return whether the person can see the run. An approver sees only runs with a request."""
        try:
            user = await person_of(self.credentials, TokenScope.READ)
        except NotAllowed:
            return False
        return await database_sync_to_async(_is_watchable)(run_id, user)

    async def _follow(self, wish: _Wish) -> None:
        try:
            for frame in await self._frames_again(wish.positions[self._run_id]):
                await self.send(text_data=frame)
            async with aclosing(self._events(wish)) as events:
                async for event in events:
                    await self._check_now_and_then()
                    await self.send(text_data=event.frame)
                    for frame in await self._frames_after(event):
                        await self.send(text_data=frame)
        except Refused as refusal:
            await self.refuse(refusal)
        except RunNotFound:
            await self.close(NOT_FOUND)
        except Exception:  # no caller awaits this task: the client would wait for ever
            log.exception("a run's socket failed", extra={"run_id": self._run_id})
            await self.close(INTERNAL_ERROR)

    async def _frames_again(self, after: int) -> list[str]:
        if not after:
            return []
        try:
            user = await person_of(self.credentials, TokenScope.READ)
        except NotAllowed:
            return []
        return await database_sync_to_async(frames_again)(self._run_id, after, user)

    async def _frames_after(self, event: StoredEvent) -> list[str]:
        entries = after_events().get(event.type, ())
        if event.run_id != self._run_id or not entries:
            return []  # frames of a subagent are sent on its own socket
        try:
            user = await person_of(self.credentials, TokenScope.READ)
        except NotAllowed:
            return []
        frames: list[str] = []
        for entry in entries:
            frames += await database_sync_to_async(entry.frames)(event, user)
        return frames

    async def _check_now_and_then(self) -> None:
        """Raise `Refused` unless the person can still watch this run."""
        if time.monotonic() - self._checked_at >= RECHECK_SECONDS:
            await database_sync_to_async(_check)(self._run_id, self.credentials)
            self._checked_at = time.monotonic()


def _check(run_id: str, credentials: Credentials) -> None:
    if not _is_watchable(run_id, reader_of(credentials)):
        raise Refused(NOT_FOUND)


def _is_watchable(run_id: str, user: Person) -> bool:
    return watchable_runs_for(user).filter(pk=run_id).exists()


def _wish(run_id: str, query_string: bytes) -> _Wish | None:
    """Return the wish in the query string. None if it is invalid."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    tree = query.get("tree", [""])[-1]
    if tree not in get_args(Tree):
        return None
    positions = {}
    at = query.get("at", [])
    if len(at) > MAX_POSITIONS:
        return None
    for given in at:
        name, _, text = given.partition(":")
        positions[name] = _position(text)
    positions[run_id] = _position(query.get("after", ["0"])[-1])
    known = {name: seq for name, seq in positions.items() if seq is not None}
    return _Wish(known, cast(Tree, tree)) if len(known) == len(positions) else None


def _position(text: str) -> int | None:
    """Return the seq in `text`. None if it is invalid."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEQ))):
        return None
    after = int(text)
    return after if after <= MAX_SEQ else None


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


class MessageFrame(Frame):
    """A message to the run's thread. Messages with the same `key` count once."""

    type: Literal["message"]
    text: Text
    key: Text | None = Field(None, min_length=1, max_length=200)

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        if run.owner_id != user.pk:
            raise NotAllowed("Only the owner of a thread can send messages to it.")
        if run.parent_id is not None:
            raise Conflict(
                "A subagent's run does not accept messages. Send the message to the run that "
                "started it.",
                code="subagent",
            )
        request = RunRequest(
            agent=run.thread.agent.slug,
            message=self.text,
            thread=run.thread_id,
            queue=True,
            source="web",
        )
        return {"run_id": create_run(request, owner=user, idempotency_key=self.key).run.id}


class CancelFrame(Frame):
    """A request to cancel the run."""

    type: Literal["cancel"]
    reason: Text = Field("", max_length=1000)

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        cancel_for(user, run, reason=self.reason)
        return {}


FRAMES = (MessageFrame, CancelFrame)
