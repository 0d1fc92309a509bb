"""The class of agents in a program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk import arguments
from agents.sdk.built_in import built_in, settled
from agents.sdk.config import (
    DEFAULT_WORKSPACE,
    DeepAgentConfig,
    SubagentConfig,
    belongs_in_options,
    checked_subagents,
    config_of,
)
from agents.sdk.environment.process import engine
from agents.sdk.environment.threads import in_thread
from agents.sdk.errors import SetupError
from agents.sdk.model_config import Model
from agents.sdk.runner import Runner
from agents.sdk.streaming.agent_file import AgentFile
from agents.sdk.streaming.continued import Continued, answer_of
from agents.sdk.streaming.stream import StreamEvent, StreamMode

with lazy_modules:
    # Import late, because this module needs the feature `subagents`.
    from agents.sdk import agent_registry

with lazy_modules:
    # Import late, because these modules need Django's apps.
    from agents.sdk.rows import sessions


class DeepAgent:
    """An agent that plans, uses files, code, databases and subagents, and requests approvals.

    Sessions of one agent may run in parallel, as may agents of one process, from any event loop.
    Nothing is stored before the first use. `close` an agent that you no longer need; the end of the
    process closes it automatically.

    >>> agent = DeepAgent({"model": scripted_model(["Hello."]), "sandbox_enabled": False})
    >>> asyncio.run(agent.run("Hello", session_id="ann"))
    'Hello.'
    >>> agent.get_state("ann")["session_id"]
    'ann'
    >>> agent.close()
    """

    def __init__(self, config: DeepAgentConfig | Mapping[str, Any] | None = None) -> None:
        """Create an agent. `config` may be a dictionary of fields of `DeepAgentConfig`.

        Raises `SetupError` for an invalid option.
        """
        given = config_of(config)
        self.config = settled(given)
        self._runner = Runner(self.config, built_in(given))

    def name_arguments(self, names: Mapping[str, str]) -> None:
        """Let errors of this agent name arguments as the program has written them."""
        self._runner.argument_names = names

    async def run(
        self,
        message: str,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        queue: bool = False,
    ) -> Any:
        """Work on `message` until the end of the run, and return the final answer.

        Args:
            message: The text for the agent.
            session_id: A name that you choose. The session with this name continues, or starts if
                it does not exist. Without a name, a new session starts.
            context: The values of `{{context.NAME}}` in the prompt.
            queue: Whether a message to a busy session waits for the end of the earlier messages.
                Otherwise it is refused with `Conflict`.

        Returns:
            The answer as text, or an instance if `output_schema` is a class.

        Raises `RunInterrupted` if a person must decide first, `RunFailed`, and `RunCancelled`. If
        the caller is cancelled, so is the run.
        """
        session_id = self._runner.session(session_id)
        place = await self._runner.begin(message, session_id, context, queue)
        return await self._runner.answer(place, session_id)

    async def run_stream(
        self,
        message: str,
        session_id: str | None = None,
        mode: StreamMode | str = StreamMode.EVENTS,
        context: Mapping[str, Any] | None = None,
        *,
        queue: bool = False,
    ) -> AsyncGenerator[Any, None]:
        """Work on `message` as `run` does, and yield events in the form of `mode`.

        The stream ends when the run has ended or waits for a person (after its `interrupt` events):
        continue the run with `resume` or `reject`. Leaving the stream earlier cancels the run. A
        run that fails ends with an `error` event and raises `RunFailed`.
        """
        mode = StreamMode(mode)
        session_id = self._runner.session(session_id)
        place = await self._runner.begin(message, session_id, context, queue)
        async with aclosing(self._runner.told(place, session_id, mode)) as items:
            async for item in items:
                yield item

    async def stream_subagent(
        self, subagent: str, task: str, session_id: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Let a subagent of this agent work alone, and yield its state after each step.

        Raises the errors of `run_stream`.
        """
        place = await self._runner.begin(task, session_id, None, subagent=subagent)
        told = self._runner.told(place, session_id, StreamMode.VALUES)
        async with aclosing(told) as items:
            async for item in items:
                yield item

    def resume(
        self,
        session_id: str | None = None,
        modified_state: Any = None,
        mode: StreamMode | str = StreamMode.EVENTS,
    ) -> Continued[Any, Any]:
        """Decide the session's pending requests and continue its run.

        This also works after a restart of the program.

        `async for` yields events in the form of `mode`. `await` returns the final answer, and
        raises the errors of `run`.

        Without `modified_state` the pending request is approved. `True` or `"approve"` approves,
        `False` or `"reject"` rejects, and any other text rejects with this text as the reason. A
        dictionary changes fields of the input, and the changed input runs. With several requests,
        pass True or False for all, or `{approval_id: decision}`; requests that are not named remain
        pending. Only requests that the program has seen as an `interrupt` are decided, or all if it
        has seen none, as after a restart. After a call that writes or reaches other systems, Vel
        asks again for the other calls of the turn: call `resume` again.

        A failed run continues after its last step.

        Raises:
            InvalidRequest: If the value is not clear. Nothing is decided then.
            Conflict: If it concerns a request that is not pending, if the run has completed or was
                cancelled, or if the session works in another directory than the one that you named.
            NotFound: If there is no such session.
            UnknownName: If no session is given, and this agent has begun none.
        """
        stream = self._resume(session_id, modified_state, StreamMode(mode))

        async def wait() -> Any:
            known = self._runner.known_session(session_id)
            async with aclosing(self._resume(known, modified_state, StreamMode.EVENTS)) as events:
                return await answer_of(events, known)

        return Continued(stream, wait)

    async def _resume(
        self, session_id: str | None, modified_state: Any, mode: StreamMode
    ) -> AsyncGenerator[Any, None]:
        session_id = self._runner.known_session(session_id)
        definition, owner = await self._runner.ready()
        place = await engine.call(sessions.place_of, definition, owner, session_id)
        sessions.check_goes_on(place, session_id, "resume", sessions.RESUME_NOT)
        await engine.call(sessions.check_directory, place, self._runner.named_directory)
        displayed = list(self._runner.shown.get(session_id, ()))
        try:
            decided, left = await engine.call(
                sessions.decide, owner, place.run_id, displayed, modified_state
            )
            await self._runner.go_on(place)
        except asyncio.CancelledError:
            self._runner.leave(place)  # the decisions are stored anyway
            raise
        repeats = left > 0 or (place.status == "waiting" and not decided)
        told = self._runner.told(place, session_id, mode, repeats_interrupts=repeats)
        async with aclosing(told) as items:
            async for item in items:
                yield item

    def reject(
        self,
        session_id: str | None = None,
        reason: str = "",
        mode: StreamMode | str = StreamMode.EVENTS,
    ) -> Continued[Any, None]:
        """Reject the pending requests and end the run. `reason` is stored with both.

        `async for` yields events in the form of `mode`. `await` returns after the end of the run.
        Raises `Conflict` if the run has already ended.
        """
        if not isinstance(reason, str):
            raise arguments.wrong("reason", "a text", reason)
        stream = self._reject(session_id, reason, StreamMode(mode))

        async def wait() -> None:
            async for _ in stream:
                pass

        return Continued(stream, wait)

    async def _reject(
        self, session_id: str | None, reason: str, mode: StreamMode
    ) -> AsyncGenerator[Any, None]:
        session_id = self._runner.known_session(session_id)
        definition, owner = await self._runner.ready()
        place = await engine.call(sessions.place_of, definition, owner, session_id)
        sessions.check_goes_on(place, session_id, "reject", sessions.REJECT_NOT)
        await engine.call(sessions.reject, owner, place.run_id, reason)
        async with aclosing(self._runner.told(place, session_id, mode, raises=False)) as items:
            async for item in items:
                yield item

    async def pending(self, session_id: str | None = None) -> list[StreamEvent]:
        """Return the pending requests of a session as `interrupt` events.

        They then count as seen.
        """
        session_id = self._runner.known_session(session_id)
        definition, owner = await self._runner.ready()
        place = await engine.call(sessions.place_of, definition, owner, session_id)
        if place.status != "waiting":
            return []
        events = self._runner.events(replace(place, seen={}), session_id, keeps=True)
        async with aclosing(events) as found:
            return [item async for _, read in found for item in read if item.type == "interrupt"]

    async def files(self, session_id: str | None = None) -> list[AgentFile]:
        """Return the files that the session's agent has written for you to /sandbox/outputs.

        Vel first copies them to `outputs_dir`, as at the end of each run. Without a sandbox, the
        result has all files of the session, which are in the database. Raises `NotFound` for an
        unknown session, and `UnknownName` if there was no session.
        """
        session_id = self._runner.known_session(session_id)
        definition, owner = await self._runner.ready()
        place = await engine.call(sessions.place_of, definition, owner, session_id)
        return (await self._runner.files(place.thread_id)).files

    @property
    def last_session_id(self) -> str | None:
        """Return the id of the session of the last message, None if there was no message."""
        return self._runner.last_session_id

    def get_state(self, session_id: str | None = None) -> dict[str, Any]:
        """Return the state of a session as JSON data, by default of the last session.

        The state has the to-do list, the loaded skills, the states of middleware and, without a
        sandbox, the files. It has neither the conversation nor the files of a sandbox. Blocks for a
        moment.

        Raises `Conflict` for a session of another agent.
        """
        return self._runner.state(session_id or self._runner.last_session_id)

    def load_state(self, state: Mapping[str, Any], session_id: str | None = None) -> None:
        """Restore a result of `get_state` in a session. Blocks for a moment.

        The session is `session_id`, else that of the state, else the last one. Parts that the state
        lacks are removed from the session. A session that does not exist yet starts with the state.
        Without any session, the next session of this agent starts with it.

        Raises:
            SetupError: If the state cannot be restored, or if the session is at work. Nothing is
                stored then.
            Conflict: If the session belongs to another agent.
        """
        self._runner.load(state, session_id)

    @property
    def agent_types(self) -> agent_registry.AgentRegistry:
        """Return the registry of agent types.

        A type that you register in it is a subagent from the next message on.
        """
        return self._runner.registry()

    def register_subagent(self, config: SubagentConfig | Mapping[str, Any]) -> None:
        """Add a subagent from the next message on, or replace the one with the same name.

        Raises `SetupError` for a subagent that could not work, and then changes nothing. Blocks for
        a moment.
        """
        (subagent,) = checked_subagents([config])
        self._runner.add_subagent(subagent)

    def close(self) -> None:
        """Finish the work of this agent in progress, and release the engine.

        The engine stops with its last agent. Blocks until then.
        """
        self._runner.close()

    async def aclose(self) -> None:
        """Call `close` without blocking the event loop."""
        await in_thread(self.close)

    async def __aenter__(self) -> DeepAgent:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def create_deep_agent(
    model: Model = None,
    tools: Sequence[Any] | None = None,
    skill_dirs: Sequence[str | Path] | None = None,
    sandbox: bool = True,
    sandbox_working_dir: str | Path | None = DEFAULT_WORKSPACE,
    databases: Mapping[str, str] | None = None,
    subagents: Sequence[SubagentConfig | Mapping[str, Any]] | None = None,
    interrupt_on: Mapping[str, Any] | None = None,
    persistence_path: str | Path | None = None,
    **options: Any,
) -> DeepAgent:
    """Return an agent with all features of Vel. `options` are other fields of `DeepAgentConfig`.

    Raises `SetupError` for an option that is unknown, wrong, or contradicts another one.

    >>> agent = create_deep_agent(scripted_model(["It is 8."]), sandbox=False)
    >>> asyncio.run(agent.run("What is 2 to the power of 3?"))
    'It is 8.'
    """
    if not isinstance(sandbox, bool):
        raise arguments.wrong("sandbox", "True or False", sandbox)
    given: dict[str, Any] = {
        "model": model,
        "tools": () if tools is None else tools,
        "skill_dirs": skill_dirs,
        "sandbox_enabled": sandbox,
        "sandbox_working_dir": sandbox_working_dir,
        "databases": {} if databases is None else databases,
        "subagents": () if subagents is None else subagents,
        "interrupt_on": {} if interrupt_on is None else interrupt_on,
        "persistence_path": persistence_path,
    }
    if "sandbox_enabled" in options:
        raise SetupError("sandbox_enabled: give the argument sandbox instead.")
    for name in options:
        if belongs_in_options(name):
            raise SetupError(f"{name}: give it as options={{{name!r}: …}}.")
    arguments.known_fields(DeepAgentConfig, options, "create_deep_agent", hidden=given)
    return DeepAgent(DeepAgentConfig(**given, **options))
