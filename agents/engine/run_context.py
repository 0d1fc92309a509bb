"""The run as its middleware sees it, from the claim until the driver releases the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError

from agents.engine.errors import Stopped, StopReason
from agents.engine.process.heartbeat import RunHandle
from agents.engine.process.resources import Resources
from agents.engine.prompt.window import note_overflow, window_of
from agents.engine.side_calls import ask_aside
from agents.engine.storage.journal import Call, Writer, write_events
from agents.engine.storage.lease import Claim, claim_run
from agents.events.append import EventDraft
from agents.kernel.chain import Loaded, load
from agents.kernel.middleware import LoadContext, RunContext
from agents.kernel.window import Window
from agents.providers.base import PromptHead, Provider, ProviderError, Reply
from agents.services.placement import Member
from agents.spec import AgentSpec
from sandbox.backends.protocol import FileBackend

if TYPE_CHECKING:
    from agents.engine.session import Session

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim with the state of the run's middleware, or with the error of loading that state."""

    claim: Claim
    spec: AgentSpec | None = None
    loaded: Loaded | None = None
    failure: Exception | None = None


def claim_and_load(
    run_id: str, executor: str, holder: str, member: Member | None = None
) -> Claimed | None:
    """Claim a run and load the state of its middleware, in one transaction.

    Returns None if the run cannot be claimed.
    """
    claim = claim_run(run_id, executor, holder, member)
    if claim is None:
        return None
    try:
        spec = AgentSpec.model_validate(claim.run.spec)
        needs = spec.needs_of_run(claim.run.output_schema)
        return Claimed(claim, spec, load(LoadContext(claim.run, spec, claim.clock.turn, needs)))
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001  # the driver raises it when it can end the run
        return Claimed(claim, failure=error)


def _write_events_and_rows(
    writer: Writer, events: Sequence[EventDraft], write: Callable[[], None]
) -> None:
    write_events(writer, events)
    write()


class DrivenRun(RunContext):
    """Implementation of `RunContext` for one claim.

    `session` is None until the conversation is loaded.
    """

    def __init__(
        self,
        claim: Claim,
        spec: AgentSpec,
        writer: Writer,
        loaded: Loaded,
        worker: Resources,
        handle: RunHandle,
    ) -> None:
        self.row = claim.run
        self.writer = writer
        self.chain = loaded.chain
        self.session: Session | None = None
        self._states = loaded.states
        self._spec = spec
        self._turn = claim.clock.turn
        self._database = worker.database
        self._threads = worker.threads
        self._provider_named = worker.provider
        self._handle = handle

    @property
    def spec(self) -> AgentSpec:
        return self._spec if self.session is None else self.session.spec

    @property
    def turn(self) -> int:
        return self._turn if self.session is None else self.session.turn

    @property
    def head(self) -> PromptHead:
        assert self.session is not None
        return self.session.head

    @property
    def provider(self) -> Provider:
        assert self.session is not None
        return self.session.provider

    @property
    def tools(self) -> Collection[str]:
        assert self.session is not None
        return self.session.toolset.tools.keys()

    @property
    def window(self) -> Window:
        assert self.session is not None
        return self.session.window

    @property
    def prompt_tokens(self) -> int:
        assert self.session is not None
        return self.session.meter.total

    @property
    def token_scale(self) -> float:
        assert self.session is not None
        return self.session.meter.scale

    @property
    def calls(self) -> Sequence[Call]:
        return () if self.session is None else self.session.last_calls

    def use_spec(self, spec: AgentSpec) -> None:
        if self.session is not None:
            raise RuntimeError(
                "The conversation is read already: use `request.begin_epoch(spec=…)` to continue "
                "with another model."
            )
        self._spec = spec

    def provider_named(self, name: str) -> Provider:
        return self._provider_named(name)

    async def learn_window(self, error: ProviderError) -> None:
        session = self.session
        assert session is not None
        note_overflow(session.provider, session.spec.model, error)
        session.window = await window_of(session.provider, session.spec)

    def reminders(self) -> list[str]:
        assert self.session is not None
        return [part.reminder() for part in self.session.parts]

    def files(self) -> FileBackend:
        assert self.session is not None
        return self.session.files.backend()

    async def ask_aside(self, head: PromptHead, text: str) -> Reply:
        assert self.session is not None
        return await ask_aside(self.session, head, text)

    async def accepts_message(self, text: str) -> bool:
        with self._handle.interruptible():
            for item in self.chain.accepts_message:
                if not await item.accepts_message(self, text):
                    return False
        return True

    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        return await self._database.run(function, *arguments)

    async def in_thread(
        self, function: Callable[..., T], *arguments: Any, to_its_end: bool = False
    ) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            if to_its_end:
                return future.result()
            raise

    async def pause(self, seconds: float) -> None:
        if self._handle.draining:
            raise Stopped(StopReason.DRAIN)
        with self._handle.interruptible():
            await asyncio.sleep(seconds)

    async def write_events(
        self, events: Sequence[EventDraft], write: Callable[[], None] | None = None
    ) -> None:
        if write is None:
            await self._database.share(write_events, self.writer, events)
        else:
            await self._database.run(_write_events_and_rows, self.writer, events, write)

    async def close(self) -> None:
        for item in self.chain.close:
            try:
                await item.close(self)
            except Exception:
                extra = {"run_id": self.writer.run_id, "middleware": item.name}
                logger.exception("a middleware could not be closed", extra=extra)
