"""The socket of one run: its events as they come, and what a person says to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, cast, get_args
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.db import DatabaseError

from agents.client_address import client_address
from agents.consumers.actions import carry_out, needed_scope
from agents.consumers.base import Consumer
from agents.consumers.credentials import Credentials, credentials_of
from agents.consumers.frames import accepted, parse_frame, refused
from agents.consumers.memory_frames import frames_after, may_need_frames
from agents.disk_space import full_disk
from agents.events.read import MAX_SEQ, RunNotFound, StoredEvent
from agents.events.tail import tail
from agents.events.tree import follow_tree
from agents.models import Door, TokenScope
from agents.selectors.visible import Person, watchable_runs_for
from agents.services.audit import Origin, acting
from agents.services.errors import InvalidRequest, NoSpace, NotAllowed, ServiceError

log = logging.getLogger(__name__)

BAD_REQUEST = 4400
UNAUTHENTICATED = 4401
FORBIDDEN = 4403
NOT_FOUND = 4404
INTERNAL_ERROR = 1011

RECHECK_SECONDS = 10.0
"""No event goes out on a right that was last looked at longer ago than this."""


Tree = Literal["", "all", "brief"]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be followed: from which seq on each run, and whether subagents too."""

    positions: dict[str, int] = field(default_factory=dict)
    tree: Tree = ""


class RunConsumer(Consumer):
    """`ws/runs/<id>/?after=N`: every event after N, then each new one, until somebody leaves.

    With `tree=all` also those of its subagents, each after the seq that an `at=ID:N` gives; with
    `tree=brief` of these only what changes their status. What a client says is for the run itself.

    The socket stays open when the run ends, since a failed one may be resumed. It is closed with
    4400 (impossible `after`), 4401 (nobody, or no longer anybody), 4403 (token without the scope)
    or 4404 (no such run, for this person): a client should not try those again.
    """

    async def connect(self) -> None:
        self._following: asyncio.Task[None] | None = None
        self._run_id: str = self.scope["url_route"]["kwargs"]["run_id"]
        self._credentials: Credentials = credentials_of(self.scope)
        # Before the handshake is accepted a close has no code that a page could read.
        await self.accept()
        wish = _wish(self._run_id, self.scope["query_string"])
        refusal = BAD_REQUEST if wish is None else await self._refusal()
        if wish is None or refusal is not None:
            await self.close(refusal)
            return
        self._checked_at = time.monotonic()
        self._following = asyncio.create_task(self._follow(wish))

    async def disconnect(self, code: int) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._following is None:
            return  # refused, and on its way to be closed
        ref = None
        try:
            if text_data is None:
                raise InvalidRequest("Frames are JSON in text, not binary.", code="bad_frame")
            frame = parse_frame(text_data)
            ref = frame.ref
            self._credentials.check_csrf(frame.csrf)
            user = await self._credentials.person(needed_scope(frame))
            if not user.is_authenticated:
                await self.close(UNAUTHENTICATED)
                return
            with acting(partial(self._origin, user)):
                result = await database_sync_to_async(carry_out)(self._run_id, frame, user)
            answer = accepted(ref, **result)
        except ServiceError as error:
            answer = refused(error.code, error.message, ref)
        except (DatabaseError, OSError) as error:
            text = full_disk(error)
            if not text:
                raise
            answer = refused(NoSpace.code, text, ref)
        await self.send(text_data=answer)

    def _origin(self, user: Person) -> Origin:
        host, *_ = self.scope.get("client") or ("",)
        headers = self.scope.get("headers", ())
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        address = client_address(str(host), forwarded.decode("latin-1"))
        return Origin(Door.SOCKET, address, user, self._credentials.name)

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
        """An approver may see a run that has asked, and none of its subagents that have not."""
        try:
            user = await self._credentials.person(TokenScope.READ)
        except NotAllowed:
            return False
        return await database_sync_to_async(_is_watchable)(run_id, user)

    async def _follow(self, wish: _Wish) -> None:
        try:
            async with aclosing(self._events(wish)) as events:
                async for event in events:
                    refusal = await self._refusal_now_and_then()
                    if refusal is not None:
                        await self.close(refusal)
                        return
                    await self.send(text_data=event.frame)
                    for frame in await self._memory_frames(event):
                        await self.send(text_data=frame)
        except RunNotFound:
            await self.close(NOT_FOUND)
        except Exception:  # nobody awaits this task: the client would wait for ever
            log.exception("a run's socket failed", extra={"run_id": self._run_id})
            await self.close(INTERNAL_ERROR)

    async def _memory_frames(self, event: StoredEvent) -> list[str]:
        if event.run_id != self._run_id or not may_need_frames(event):
            return []  # a subagent's are answered on a socket of its own
        try:
            user = await self._credentials.person(TokenScope.READ)
        except NotAllowed:
            return []
        return await database_sync_to_async(frames_after)(event, user)

    async def _refusal_now_and_then(self) -> int | None:
        if time.monotonic() - self._checked_at < RECHECK_SECONDS:
            return None
        refusal = await self._refusal()
        self._checked_at = time.monotonic()
        return refusal

    async def _refusal(self) -> int | None:
        """The code to close with, or None for somebody who may watch this run now."""
        try:
            user = await self._credentials.person(TokenScope.READ)
        except NotAllowed:
            return FORBIDDEN
        if not user.is_authenticated:
            return UNAUTHENTICATED
        visible = await database_sync_to_async(_is_watchable)(self._run_id, user)
        return None if visible else NOT_FOUND


def _is_watchable(run_id: str, user: Person) -> bool:
    return watchable_runs_for(user).filter(pk=run_id).exists()


def _wish(run_id: str, query_string: bytes) -> _Wish | None:
    """What the query asks for; None where it makes no sense."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    tree = query.get("tree", [""])[-1]
    if tree not in get_args(Tree):
        return None
    positions = {}
    for given in query.get("at", []):
        name, _, text = given.partition(":")
        positions[name] = _position(text)
    positions[run_id] = _position(query.get("after", ["0"])[-1])
    known = {name: seq for name, seq in positions.items() if seq is not None}
    return _Wish(known, cast(Tree, tree)) if len(known) == len(positions) else None


def _position(text: str) -> int | None:
    """A seq; None where it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEQ))):
        return None
    after = int(text)
    return after if after <= MAX_SEQ else None
