"""The state of a session as JSON data, which a program can store and restore."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from agents.engine.prompt.history import history_since
from agents.kernel.options import validated_options
from agents.kernel.proposals import beside_requests, request_relations
from agents.kernel.session_state import SessionAgent, session_states
from agents.middleware.custom.state import MAX_STATE_BYTES
from agents.models import (
    Agent,
    ApprovalRequest,
    Message,
    MessageRole,
    Run,
    RunClock,
    StateFile,
    Thread,
)
from agents.sdk.config import check_for_agent
from agents.sdk.errors import SetupError
from agents.sdk.rows.definition import MIDDLEWARE_NAME, Definition
from agents.selectors.family import descendants_of, goes_on_alone
from agents.selectors.visible import Person, unless_private
from agents.services.errors import Conflict
from agents.services.files.state_files import check_files, replace_files
from agents.services.runs.middleware_states import replace_states, states_of
from agents.spec import AgentSpec
from agents.states import ACTIVE_RUNS, ApprovalStatus, RunStatus

State = dict[str, Any]


def json_of(state: Any) -> State:
    """Return a copy of a state. Raises `SetupError` unless it is a dictionary of JSON data."""
    if not isinstance(state, Mapping):
        raise SetupError("load_state: state must be a dictionary, as get_state returns it.")
    try:
        copy = dict(json.loads(json.dumps(dict(state), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise SetupError(f"load_state: the state must contain JSON data only: {error}.") from None
    if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for text in _texts(copy) for sign in text):
        raise SetupError("load_state: a text contains a NUL or a lone surrogate: leave it out.")
    session_id = copy.get("session_id")
    if session_id is not None and (not isinstance(session_id, str) or not session_id):
        raise SetupError("load_state: session_id must be a text or None.")
    return copy


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value


def empty_state(definition: Definition) -> State:
    """Return the state of a new session, without `session_id`."""
    state: State = {part.name: dict(part.empty) for part in session_states()}
    state["middleware"] = {}
    if not definition.config.sandbox_enabled:
        state["filesystem"] = {"files": {}}
    return state


def check_state(definition: Definition, owner: Any, state: Mapping[str, Any]) -> State:
    """Return a checked state with all its parts, without `session_id`.

    Raises `SetupError` if `give` could not restore the state exactly.
    """
    given = {name: value for name, value in state.items() if name != "session_id"}
    empty = empty_state(definition)
    if unknown := sorted(set(given) - set(empty)):
        raise SetupError(_unknown(unknown[0]))
    agent = _agent(definition, owner)
    for part in session_states():
        if part.name in given:
            try:
                given[part.name] = part.check(given[part.name], agent)
            except ValueError as error:
                raise SetupError(f"load_state: {part.name}: {error}") from None
    _check_middleware(given.get("middleware", {}))
    if "filesystem" in given:
        files_in(given["filesystem"])
    return {**empty, **given}


def _unknown(name: str) -> str:
    if name == "filesystem":
        return (
            "load_state: the files of this agent are in a directory of its sandbox, and not in "
            "its state: leave filesystem out, or make the agent with sandbox=False."
        )
    return f"load_state: {name!r} is no part of a state from get_state."


def check_agent(definition: Definition, owner: Any) -> None:
    """Raise `SetupError` if a subagent names a skill that the agent does not have."""
    if any(item.skills for item in definition.subagents):
        values = {**vars(definition.config), "subagents": definition.subagents}
        check_for_agent(values, _agent(definition, owner))


def _agent(definition: Definition, owner: Any) -> SessionAgent:
    known = Agent.objects.filter(slug=definition.slug(owner)).values_list("pk", flat=True).first()
    values = validated_options(definition.values()).model_dump(mode="json")
    spec = AgentSpec(**{**values, "name": "", "slug": "", "output_schema": ""})
    return SessionAgent(known or "", spec, definition.config.skill_directories())


def _check_middleware(states: Any) -> None:
    if not isinstance(states, Mapping):
        raise SetupError("load_state: middleware must be a dictionary.")
    for name, value in states.items():
        if not isinstance(value, Mapping):
            raise SetupError(f"load_state: middleware: {name} must be a dictionary.")
        if not 0 < len(name) <= MIDDLEWARE_NAME:
            raise SetupError(f"load_state: middleware: {name[:40]!r} is no name.")
        if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_STATE_BYTES:
            raise SetupError(
                f"load_state: middleware: {name} has more than {MAX_STATE_BYTES:,} bytes."
            )


def files_in(part: Any) -> dict[str, bytes]:
    """Return the files of a part `filesystem` by path. Raises `SetupError`."""
    if not isinstance(part, Mapping) or set(part) != {"files"}:
        raise SetupError('load_state: filesystem must be {"files": {path: content in base64}}.')
    if not isinstance(part["files"], Mapping):
        raise SetupError("load_state: filesystem: files must be a dictionary.")
    files = {}
    for path, text in part["files"].items():
        try:
            files[path] = base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise SetupError(
                f"load_state: filesystem: the content of {path!r} is no base64."
            ) from None
    try:
        check_files(files)
    except ValueError as error:
        raise SetupError(f"load_state: filesystem: {error}") from None
    return files


def thread_of(definition: Definition, owner: Any, session_id: str) -> Thread | None:
    """Return the thread of a session, None if there is none.

    Raises `Conflict` for a session of another agent.
    """
    threads = Thread.objects.filter(owner=owner, key=session_id, root=None)
    thread = threads.select_related("agent").first()
    if thread is not None and thread.agent.slug != definition.slug(owner):
        raise Conflict(
            f"The session {session_id!r} belongs to the agent {thread.agent.name!r}: use that "
            "one's name.",
            code="other_agent",
        )
    return thread


def read_session(definition: Definition, owner: Any, session_id: str) -> State | None:
    """Return the state of the session `session_id`, without the key `session_id`.

    None if there is no such session. Raises `Conflict` for a session of another agent.
    """
    thread = thread_of(definition, owner, session_id)
    if thread is None:
        return None
    state: State = {part.name: part.read(thread.pk) for part in session_states()}
    state["middleware"] = states_of(thread.pk)
    if not definition.config.sandbox_enabled:
        rows = StateFile.objects.filter(thread=thread).values_list("path", "content")
        state["filesystem"] = {
            "files": {path: base64.b64encode(bytes(content)).decode() for path, content in rows}
        }
    return state


def write_session(
    definition: Definition, owner: Any, session_id: str, state: Mapping[str, Any]
) -> bool:
    """Replace the parts of a session's state that a checked state has.

    Returns False if the session does not exist yet. Locks the thread. Raises `SetupError` if the
    session is at work, and `Conflict` for a session of another agent.
    """
    thread = thread_of(definition, owner, session_id)
    if thread is None:
        return False
    Thread.objects.select_for_update().get(pk=thread.pk)
    if Run.objects.filter(thread=thread, status__in=[*ACTIVE_RUNS, RunStatus.PENDING]).exists():
        raise SetupError(f"load_state: the session {session_id!r} is at work; wait for its end.")
    give(definition, thread, state)
    return True


def give(definition: Definition, thread: Thread, state: Mapping[str, Any]) -> None:
    """Write the parts of a checked state to a thread that is not at work."""
    for part in session_states():
        if part.name in state:
            part.write(thread.pk, state[part.name])
    if "middleware" in state:
        replace_states(thread.pk, state["middleware"])
        for keeper in definition.toolkit.keepers():
            keeper.forget(thread.pk)
    if "filesystem" in state:
        replace_files(thread.pk, files_in(state["filesystem"]))


def values_of(run_id: str, session_id: str) -> dict[str, Any]:
    """Return the state of a run's session, in the form of the stream mode `values`.

    `messages` is the whole conversation. Results of tools are blocks of messages with the role
    `user`.
    """
    run = Run.objects.select_related("thread").get(pk=run_id)
    messages = [
        {"role": role, "content": json.loads(blocks)} for role, blocks in history_since(None, run)
    ]
    waiting = Family(run_id).pending_requests()
    of_features = [part.read(run.thread_id) for part in session_states()]
    answer = Message.objects.filter(run=run, role=MessageRole.ASSISTANT).last()
    return {
        "session_id": session_id,
        "run_id": run_id,
        "status": run.status,
        "messages": messages,
        **{name: value for fields in of_features for name, value in fields.items()},
        "interrupts": [
            {"approval_id": request.pk, "tool_name": request.tool, "kind": request.kind}
            for request in waiting
        ],
        "response": answer.text if answer and run.status == RunStatus.COMPLETED else None,
    }


class Family:
    """A run and its subagents.

    Each method reads the rows again, because other processes change them.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def members(self) -> list[Run]:
        """Return the run, then its descendants."""
        return [Run.objects.get(pk=self.run_id), *descendants_of(self.run_id)]

    def pending_requests(self, person: Person | None = None) -> list[ApprovalRequest]:
        """Return the pending requests for which runs wait, oldest first.

        With `person`, the private requests of other people are omitted.
        """
        found = ApprovalRequest.objects.filter(
            run__in=[member.pk for member in self.members()], status=ApprovalStatus.PENDING
        )
        if person is not None:
            found = found.filter(unless_private(person))
        return list(
            found.exclude(beside_requests())
            .select_related(
                "run__agent_version__agent",
                "run__owner",
                "run__thread",
                *request_relations(),
            )
            .order_by("id")
        )

    def is_stuck(self) -> bool:
        """Return whether the run continues only after an action outside this process."""
        run, *below = self.members()
        if run.has_ended:
            return False
        return not goes_on_alone([run, *(member for member in below if not member.has_ended)])

    def positions(self) -> dict[str, int]:
        """Return the seq of the last event of each run, from which to read later events."""
        clocks = RunClock.objects.filter(run__in=[member.pk for member in self.members()])
        return dict(clocks.values_list("run_id", "seq"))
