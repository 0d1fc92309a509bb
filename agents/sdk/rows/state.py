"""A session's state as JSON, which a program can store and restore."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from agents.engine.prompt.history import history_since
from agents.kernel.proposals import beside_requests, request_relations
from agents.kernel.session_state import session_states
from agents.models import ApprovalRequest, Message, MessageRole, Run, RunClock, StateFile, Thread
from agents.sdk.errors import SetupError
from agents.sdk.rows.definition import Definition
from agents.selectors.family import descendants_of, goes_on_alone
from agents.selectors.visible import Person, unless_private
from agents.services.files.state_files import DatabaseFileStore
from agents.services.runs.middleware_states import states_of, store_state
from agents.states import ACTIVE_RUNS, ApprovalStatus, RunStatus

KEYS = frozenset({"session_id", "filesystem", "middleware"})
"""Keys of a state, beside those of features."""


def check_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a state from `read_session`. Raises `SetupError` for other keys."""
    known = KEYS | {part.name for part in session_states()}
    if unknown := sorted(set(state) - known):
        raise SetupError(f"load_state: {unknown[0]!r} is no part of a state from get_state.")
    for name in ("middleware", "filesystem"):
        if not isinstance(state.get(name, {}), Mapping):
            raise SetupError(f"load_state: {name} must be a dictionary.")
    return dict(json.loads(json.dumps(dict(state))))


def thread_of(owner: Any, session_id: str) -> Thread | None:
    return Thread.objects.filter(owner=owner, key=session_id, root=None).first()


def read_session(definition: Definition, owner: Any, session_id: str) -> dict[str, Any]:
    """Return `session_id`, `middleware`, features' parts, and `filesystem` without a sandbox."""
    thread = thread_of(owner, session_id)
    if thread is None:
        return {"session_id": session_id}
    state: dict[str, Any] = {
        "session_id": session_id,
        **{part.name: part.read(thread.pk) for part in session_states()},
        "middleware": states_of(thread.pk),
    }
    if not definition.config.sandbox_enabled:
        rows = StateFile.objects.filter(thread=thread).values_list("path", "content")
        state["filesystem"] = {
            "files": {path: base64.b64encode(bytes(content)).decode() for path, content in rows}
        }
    return state


def write_session(
    definition: Definition, owner: Any, session_id: str, state: Mapping[str, Any]
) -> bool:
    """Restore a result of `read_session`. Return False if the session does not exist yet."""
    thread = thread_of(owner, session_id)
    if thread is None:
        return False
    if Run.objects.filter(thread=thread, status__in=ACTIVE_RUNS).exists():
        raise SetupError(f"load_state: the session {session_id!r} is at work; wait for its end.")
    give(definition, thread, state)
    return True


def give(definition: Definition, thread: Thread, state: Mapping[str, Any]) -> None:
    """Write a state into a thread without an active run."""
    for part in session_states():
        if part.name in state:
            part.write(thread.pk, state[part.name])
    for name, value in state.get("middleware", {}).items():
        store_state(thread.pk, name, value)
    for keeper in definition.toolkit.keepers():
        keeper.forget(thread.pk)
    store = DatabaseFileStore(thread.pk, lambda call, *given: call(*given), lambda: None)
    for path, content in state.get("filesystem", {}).get("files", {}).items():
        store[path] = base64.b64decode(content)


def values_of(run_id: str, session_id: str) -> dict[str, Any]:
    """Return the state of a run's session, in the form of the stream mode `values`.

    `messages` is the whole conversation: it has the results of tools, as blocks of messages with
    the role `user`.
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

    Each method queries them again, since other processes change them.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def members(self) -> list[Run]:
        """Return the run itself, then its descendants."""
        return [Run.objects.get(pk=self.run_id), *descendants_of(self.run_id)]

    def pending_requests(self, person: Person | None = None) -> list[ApprovalRequest]:
        """Return the pending requests for which runs wait, the oldest first.

        With `person`, the private requests of other people are left out.
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
        """Return whether it continues only after an action outside of this process."""
        run, *below = self.members()
        if run.has_ended:
            return False
        return not goes_on_alone([run, *(member for member in below if not member.has_ended)])

    def positions(self) -> dict[str, int]:
        """Return the last seq of each run, to read only later events."""
        clocks = RunClock.objects.filter(run__in=[member.pk for member in self.members()])
        return dict(clocks.values_list("run_id", "seq"))
