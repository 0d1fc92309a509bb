"""Implement `DeepAgent`: set up the agent, start runs, and report their events."""

from __future__ import annotations

import asyncio
import threading
import uuid
import weakref
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk import arguments
from agents.sdk.answer_form import AnswerRefused, form_of
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DeepAgentConfig, DefaultDirectory, SubagentConfig
from agents.sdk.environment.process import engine
from agents.sdk.environment.project import prepare
from agents.sdk.environment.threads import begin_in_thread
from agents.sdk.errors import RunCancelled, RunFailed, UnknownName
from agents.sdk.models import choice_of, key_of
from agents.sdk.session_states import SessionStates
from agents.sdk.streaming.agent_file import AgentFile
from agents.sdk.streaming.continued import answer_of
from agents.sdk.streaming.stream import EventReader, LogEvent, StreamEvent, StreamMode

with lazy_modules:
    # Import late, because this module needs the feature `subagents`.
    from agents.sdk import agent_registry

with lazy_modules:
    # Import late, because these modules need Django's apps.
    from agents.events import preview
    from agents.sdk import toolkits
    from agents.sdk.environment import owner as owners
    from agents.sdk.environment import workplace
    from agents.sdk.rows import definition as definitions
    from agents.sdk.rows import sessions, state
    from agents.sdk.streaming import follow, modes, outputs
    from agents.services import disk_reserve, errors
    from sandbox.own_directory import rules


T = TypeVar("T")

POLL_SECONDS = 0.5
LEFT = "its caller went away"


class Runner:
    """The runs of one agent. The first of them imports Django."""

    def __init__(
        self, config: DeepAgentConfig, middleware: Sequence[BuiltInMiddleware] = ()
    ) -> None:
        """Create a runner.

        `config` includes the values of `middleware`, Vel's own middleware that the program has
        passed.
        """
        self.config = config
        self._registry: Any = config.agent_types
        self._middleware = middleware
        self._form = form_of(config.output_schema)
        self.argument_names: Mapping[str, str] = {}
        """See `arguments.renamed`."""
        self.extra: dict[str, SubagentConfig] = {}
        self._states = SessionStates(middleware)
        self.last_session_id: str | None = None
        self.shown: dict[str, set[str]] = {}
        self._definition: definitions.Definition | None = None
        self._checked: definitions.Definition | None = None
        """The definition, after it was also checked against the stored rows."""
        self._toolkit: Any = None
        self._toolkits: list[Any] = []
        """All toolkits of the agent, because sessions of earlier ones may wait for a person."""
        self._owner: Any = None
        self._workspace = ""
        self._rules: rules.FileRules | None = None
        self._outputs: Path | None = None
        self._collected: dict[str, outputs.Known] = {}
        self._lock = threading.Lock()
        self._token = object()
        self._forget: weakref.finalize[Any, Any] | None = None
        self._unfinished: set[Future[Any]] = set()
        """Work that continues after its caller was cancelled. `close` waits for it."""
        if self._registry is not None:
            self._registry.checked_by(self._check_types)

    def registry(self) -> agent_registry.AgentRegistry:
        """Return the registry of the config, or else a new one for this agent."""
        if self._registry is None:
            self._registry = agent_registry.AgentRegistry()
            self._registry.checked_by(self._check_types)
        found: agent_registry.AgentRegistry = self._registry
        return found

    def add_subagent(self, subagent: SubagentConfig) -> None:
        """Add a subagent from the next run on. Raises `SetupError` if it could not work."""
        self._check_subagents({**self.extra, subagent.name: subagent}, self._types())
        self.extra[subagent.name] = subagent

    def _types(self) -> Sequence[SubagentConfig]:
        if self._registry is None:
            return []
        found: Sequence[SubagentConfig] = self._registry.subagents(self.config.system_prompt)
        return found

    def _check_types(self, types: Sequence[SubagentConfig]) -> None:
        self._check_subagents(self.extra, types)

    def _check_subagents(
        self, extra: Mapping[str, SubagentConfig], types: Collection[SubagentConfig]
    ) -> None:
        """Check subagents before they are added. Blocks. Raises `SetupError`."""
        wanted = _joined(self.config.subagents, types, extra.values())
        begin_in_thread(self._check_definition, wanted).result()

    def _check_definition(self, subagents: tuple[SubagentConfig, ...]) -> None:
        with arguments.renamed(self.argument_names):
            prepare(self.config.persistence_path, database=False)
            toolkit = toolkits.toolkit_of(self.config, subagents, self._toolkit)
            found = definitions.Definition.of(self.config, toolkit, subagents, needs_model=False)
            if self._owner is not None:
                engine.ask(state.check_agent, found, self._owner).result()

    async def ready(self) -> tuple[definitions.Definition, Any]:
        """Return (the checked definition, the owner of the runs). Raises `SetupError`."""
        preparing = self._finished_before_close(begin_in_thread(self._prepare))
        definition, owner = await asyncio.wrap_future(preparing)
        definition.toolkit.loop = asyncio.get_running_loop()
        return definition, owner

    def ready_now(self) -> tuple[definitions.Definition, Any]:
        """Return the result of `ready` without an event loop. Blocks."""
        return self._finished_before_close(begin_in_thread(self._prepare)).result()

    def _prepare(self) -> tuple[definitions.Definition, Any]:
        with arguments.renamed(self.argument_names):
            prepare(
                self.config.persistence_path,
                api_key=key_of(self.config.model),
                provider=choice_of(self.config.model).provider,
            )
            with self._lock:
                return self._prepared()

    def _prepared(self) -> tuple[definitions.Definition, Any]:
        config = self.config
        subagents = _joined(config.subagents, self._types(), self.extra.values())
        if self._definition is None or self._definition.subagents != subagents:
            toolkit = toolkits.toolkit_of(config, subagents, self._toolkit)
            self._definition = definitions.Definition.of(config, toolkit, subagents)
            self._toolkit = toolkit
            self._toolkits.append(toolkit)
        if self._forget is None:
            self._forget = weakref.finalize(self, toolkits.forget, self._toolkits, self._token)
        engine.join(self._token)
        if self._owner is None:
            if config.sandbox_enabled:
                sessions.require_sandbox()
                if config.toolbox:
                    workplace.check_toolbox(config.toolbox)
                self._outputs = workplace.outputs_directory(config.outputs_dir)
                if config.sandbox_working_dir is not None:
                    self._workspace = str(workplace.workspace_directory(config.sandbox_working_dir))
                    self._rules = workplace.file_rules(config, self._workspace)
            self._owner = engine.ask(owners.owner_of, config.user).result()
        if self._checked is not self._definition:
            engine.ask(state.check_agent, self._definition, self._owner).result()
            self._checked = self._definition
        return self._definition, self._owner

    @property
    def named_directory(self) -> str:
        """Return the absolute path of the caller's working directory, "" if it is the default."""
        is_default = isinstance(self.config.sandbox_working_dir, DefaultDirectory)
        return "" if is_default else self._workspace

    def close(self) -> None:
        """Release all that `ready` has acquired, after unfinished work. Blocks."""
        while self._unfinished:
            wait(list(self._unfinished))
        try:
            if self._owner is not None:
                for item in self._middleware:
                    item.leave(self)
        finally:
            if self._forget is not None:
                if self._toolkit.wants_ends and engine.is_running:
                    engine.worker.tell_ends()  # its code is not available afterwards
                self._forget()
                self._forget, self._owner = None, None
            engine.leave(self._token)

    def session(self, given: str | None) -> str:
        _check_session(given)
        self.last_session_id = given if given is not None else uuid.uuid4().hex
        return self.last_session_id

    def known_session(self, given: str | None) -> str:
        _check_session(given)
        known = self.last_session_id if given is None else given
        if known is None:
            raise UnknownName("Which session? This agent has begun none: give its session_id.")
        return known

    async def begin(
        self,
        message: str,
        session_id: str,
        context: Mapping[str, Any] | None,
        queue: bool = False,
        subagent: str = "",
    ) -> sessions.Place:
        """Store the message and start a run. With `queue`, the message may wait for a busy session.

        With the name of a `subagent`, the run works as this subagent, without a parent. Raises
        `NoSpace` on a full disk, and `Conflict` for a busy session or a session of another agent.
        """
        if not isinstance(message, str):
            raise arguments.wrong("message", "a text", message)
        if context is not None:
            arguments.named("context", context, '{"customer": "Acme"}')
        if not isinstance(queue, bool):
            raise arguments.wrong("queue", "True or False", queue)
        with disk_reserve.disk_full_refused():
            try:
                return await self._begin(message, session_id, context, queue, subagent)
            except errors.Conflict as error:
                if error.code == "other_agent":
                    raise errors.Conflict(
                        f"The session {session_id!r} belongs to another agent: use another session "
                        "id, or that agent's name.",
                        code=error.code,
                    ) from error
                if error.code != "thread_busy" or queue:
                    raise
                raise errors.Conflict(
                    f"The session {session_id!r} is busy with an earlier message: wait for its "
                    "end, reject it, or pass queue=True to let this message wait.",
                    code=error.code,
                ) from error

    async def _begin(
        self,
        message: str,
        session_id: str,
        context: Mapping[str, Any] | None,
        queue: bool,
        subagent: str,
    ) -> sessions.Place:
        definition, owner = await self.ready()
        request = {
            "message": message,
            "key": session_id,
            "queue": queue,
            "context": context,
            "workspace_path": self._workspace,
            "workspace_is_default": not self.named_directory,
            "workspace_rules": self._rules,
            "skill_directories": self.config.skill_directories() or None,
        }
        loaded_for, loaded = self._states.beginning(session_id)
        begin = partial(sessions.begin, subagent=subagent, must_be_new=loaded_for is not None)
        executor = engine.worker.executor
        begun = engine.ask(begin, definition, owner, request, executor, loaded)
        try:
            with arguments.renamed(self.argument_names):
                place = await asyncio.shield(asyncio.wrap_future(begun))
        except asyncio.CancelledError:
            # The run is stored anyway, a moment later.
            self._finished_before_close(begin_in_thread(self._leave_begun, begun))
            raise
        if place.is_new:
            self._states.begun(loaded_for)
        return place

    def state(self, session_id: str | None) -> dict[str, Any]:
        """Return the state of a session, also before it starts. Blocks."""
        _check_session(session_id)
        return self._states.read(*self.ready_now(), session_id)

    def load(self, given: Any, session_id: str | None) -> None:
        """Restore a state in a session, or keep the state until the session starts. Blocks.

        Raises `SetupError` and `Conflict`, and then changes nothing.
        """
        _check_session(session_id)
        self.last_session_id = self._states.load(
            *self.ready_now(), given, session_id, self.last_session_id
        )

    def part(self, session_id: str, name: str) -> Any:
        return self.state(session_id)[name]

    def replace_part(self, session_id: str, name: str, value: Any) -> None:
        self._states.replace_part(*self.ready_now(), session_id, name, value)

    def _leave_begun(self, begun: Future[sessions.Place]) -> None:
        if begun.exception() is None:
            self.leave(begun.result())

    def leave(self, place: sessions.Place) -> None:
        """Cancel a run that has no caller any more."""
        if engine.is_running:
            self._finished_before_close(
                engine.ask(sessions.cancel, self._owner, place.run_id, LEFT)
            )

    def _finished_before_close(self, work: Future[T]) -> Future[T]:
        self._unfinished.add(work)
        work.add_done_callback(self._unfinished.discard)
        return work

    async def files(self, thread_id: str) -> outputs.Collected:
        """Copy the files that a session's agent has written for the program, and return them."""
        place = await engine.call(outputs.place_of_outputs, thread_id)
        if place is None:
            return outputs.Collected(await engine.call(outputs.files_in_rows, thread_id), [])
        known = self._collected.setdefault(thread_id, {})
        collecting = begin_in_thread(outputs.collect, place, self._outputs, known)
        return await asyncio.wrap_future(self._finished_before_close(collecting))

    async def go_on(self, place: sessions.Place) -> None:
        """Let this process execute the run, unless another process does or a person must decide.

        Waits until the lease of a dead process has expired. Raises `Conflict`.
        """
        executor = engine.worker.executor
        while not await engine.call(sessions.go_on, place.run_id, executor):  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)  # the end of a lease sends no notification
        engine.worker.submit(place.run_id)

    async def told(
        self,
        place: sessions.Place,
        session_id: str,
        mode: StreamMode | str,
        *,
        repeats_interrupts: bool = False,
        raises: bool = True,
    ) -> AsyncGenerator[Any, None]:
        """Yield the run in the form of `mode`, until it ends or waits for a person.

        With `repeats_interrupts`, all requests that are pending at the end are included, also those
        of earlier streams.
        """
        for item in self._middleware:
            item.follow(self, session_id)
        teller = modes.Teller(engine, StreamMode(mode), place, session_id)
        failure: Exception | None = None
        told: set[str] = set()
        for item in await teller.begin():
            yield item
        async with aclosing(self.events(place, session_id)) as found:
            async for event, read in found:
                async for item in teller.tell(event, read):
                    yield item
                told |= _interrupts(read)
                failure = failure or _failure(read, session_id)
        if repeats_interrupts and failure is None:
            stored = self.events(replace(place, seen={}), session_id, keeps=True)
            async with aclosing(stored) as found:
                async for event, read in found:
                    if _interrupts(read) - told:
                        async for item in teller.tell(event, read):
                            yield item
        for item in teller.finish():
            yield item
        if failure is not None and raises:
            raise failure

    async def events(
        self, place: sessions.Place, session_id: str, *, keeps: bool = False
    ) -> AsyncGenerator[tuple[LogEvent, list[StreamEvent]], None]:
        """Yield rows of the event log with their stream events.

        Leaving the generator early, except after an interrupt, cancels the run. With `keeps`, only
        stored rows are included, and no run is cancelled.
        """
        reader = EventReader(place.run_id, session_id, place.tools)
        done = keeps
        try:
            async with aclosing(
                follow.follow(engine, place.run_id, place.seen, waits=not keeps)
            ) as found:
                async for event in found:
                    read = []
                    for item in reader.read(event):
                        if item.type == "interrupt":
                            asked = item.metadata["approval_id"]
                            request = await engine.call(sessions.pending_request, asked)
                            if request is None:
                                continue  # it was decided in between
                            if request.is_private:  # the log, which others read, has no input
                                shown = preview.preview_input(request.input)
                                told = {**item.metadata, "input": shown}
                                item = replace(item, metadata=told)
                            self.shown.setdefault(session_id, set()).add(asked)
                        elif item.type == "end":
                            done = True
                            _, answer, _, _ = await engine.call(sessions.outcome, place.run_id)
                            item = self._with_answer(item, answer, session_id)
                        if item.type in _ENDS and not keeps:
                            read += _artifacts((await self.files(place.thread_id)).new)
                        read.append(item)
                    done = keeps or any(item.type in _MAY_LEAVE for item in read)
                    yield event, read
            done = True
        finally:
            if not done:
                self.leave(place)

    def _with_answer(self, end: StreamEvent, answer: str, session_id: str) -> StreamEvent:
        """Return `end` with its answer, and with an instance if the form is a class.

        Raises `RunFailed`.
        """
        if self._form is None or self._form.reads is None:
            return replace(end, content=answer)
        try:
            output = self._form.value(answer)
        except AnswerRefused as error:
            raise RunFailed(str(error), code="output_invalid", session_id=session_id) from error
        return replace(end, content=answer, metadata={**end.metadata, "output": output})

    async def answer(self, place: sessions.Place, session_id: str) -> Any:
        """Wait for the end of the run and return its answer.

        Raises the errors of `DeepAgent.run`.
        """
        async with aclosing(self.told(place, session_id, StreamMode.EVENTS)) as events:
            return await answer_of(events, session_id)


def _check_session(given: Any) -> None:
    if not (given is None or isinstance(given, str)):
        raise arguments.wrong("session_id", "a text or None", given)


def _joined(*subagents: Collection[SubagentConfig]) -> tuple[SubagentConfig, ...]:
    """Return all subagents. Later ones replace earlier ones with the same name."""
    return tuple({one.name: one for each in subagents for one in each}.values())


_ENDS = frozenset({"end", "error", "cancelled"})
_MAY_LEAVE: Collection[str] = _ENDS | {"interrupt"}


def _artifacts(files: Collection[AgentFile]) -> list[StreamEvent]:
    return [StreamEvent("artifact", file.name, file.to_dict()) for file in files]


def _interrupts(read: Collection[StreamEvent]) -> set[str]:
    return {item.metadata["approval_id"] for item in read if item.type == "interrupt"}


def _failure(read: Collection[StreamEvent], session_id: str) -> Exception | None:
    for item in read:
        if item.type == "error":
            code = str(item.metadata.get("code", ""))
            return RunFailed(item.content, code=code, session_id=session_id)
        if item.type == "cancelled":
            return RunCancelled(f"The run was cancelled: {item.content}", session_id=session_id)
    return None
