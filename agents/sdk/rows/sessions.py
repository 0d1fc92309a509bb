"""Start and find the runs of a program's sessions, and decide their requests.

All functions run on the engine's database thread.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import toolkits
from agents.events.append import dump
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.proposals import proposal_kind
from agents.middleware import decisions
from agents.middleware.inputs import with_changes
from agents.models import NEVER_STARTED, ApprovalRequest, Run, Thread, ToolCall
from agents.sdk.errors import SetupError
from agents.sdk.rows.definition import Definition
from agents.sdk.rows.state import Family, give, thread_of
from agents.selectors.visible import approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.control import cancel_run, must_have_tools, resume_orphaned_family
from agents.services.runs.delegation import answer_of
from agents.services.runs.session_files import check_working_directory
from agents.services.runs.start import RunRequest, create_run
from agents.spec import AgentSpec
from agents.states import ACTIVE_RUNS, OPEN_CALLS, ApprovalStatus, Decision, RunStatus, WaitReason
from sandbox.linux.probe import check_host

with lazy_modules:
    # Import late, because the feature may be missing.
    from agents.features.subagents import types

SOURCE = "python"
RESUME_NOT = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})
REJECT_NOT = RESUME_NOT | {RunStatus.FAILED}


@dataclass(frozen=True, slots=True)
class Place:
    """A run and the position up to which the program has read it.

    `seen` has the number of the last event of the run and of each subagent.
    """

    run_id: str
    thread_id: str
    status: str
    seen: Mapping[str, int]
    tools: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The tools of earlier calls without a result, by run and call."""
    is_new: bool = False
    """Whether the run is the first of its session."""


def begin(
    definition: Definition,
    owner: Any,
    request: dict[str, Any],
    executor: str,
    loaded: Mapping[str, Any],
    *,
    subagent: str = "",
    must_be_new: bool = False,
) -> Place:
    """Store the agent and start a run of it, bound to the agent's own tools.

    Args:
        definition: The checked agent.
        owner: The owner of the agent and the run.
        request: Other fields of `RunRequest`. Its `key` is the id of the session.
        executor: The process that drives the run.
        loaded: Parts of a checked state, for a new session.
        subagent: The name of a subagent as which the run works. Empty: as the agent.
        must_be_new: Whether the session must not exist yet.

    Raises:
        Conflict: If the session `must_be_new` and another process has started it, and for the
            reasons of `create_run`.
    """
    session_id = request["key"]
    if must_be_new and thread_of(definition, owner, session_id) is not None:
        raise Conflict(
            f"The session {session_id!r} has begun since its state was loaded: load it again.",
            code="stale",
        )
    agent = definition.save(owner)
    run = create_run(
        RunRequest(agent=agent.slug, executor=executor, source=SOURCE, **request), owner=owner
    ).run
    if subagent:
        _work_as(run, subagent)
    _bind(definition, run.thread_id)
    if run.number == 1:
        give(definition, run.thread, loaded)
    return Place(run.pk, run.thread_id, run.status, {}, is_new=run.number == 1)


def _work_as(run: Run, name: str) -> None:
    """Let a new run work as a subagent of its agent, within the limits of the agent."""
    parent = AgentSpec.model_validate(run.spec)
    subagent = types.find_subagent(parent, name)
    assert subagent is not None
    of_agent = ("output_schema", "max_tokens", "max_cost", "needs")
    spec = types.child_spec(parent, subagent).model_dump(mode="json")
    spec |= {option: run.spec[option] for option in of_agent if option in run.spec}
    spec["works_as"] = subagent.model_dump(mode="json")
    run.subagent, run.subagent_spec = subagent.name, spec
    run.save(update_fields=["subagent", "subagent_spec"])


def _bind(definition: Definition, thread_id: str) -> None:
    toolkits.bind(thread_id, definition.toolkit)
    for keeper in definition.toolkit.keepers():
        keeper.forget(thread_id)


def last_run(definition: Definition, owner: Any, session_id: str) -> Run:
    """Return the active run of a session, or else its newest run, and bind the agent's tools to it.

    A run is active if it is at work or waits for a person. Queued messages are ignored. Raises
    `NotFound`, and `Conflict` for a session of another agent.
    """
    runs = Run.objects.filter(thread__owner=owner, thread__key=session_id, parent=None)
    runs = runs.select_related("thread__agent", "agent_version").order_by("-number")
    run = runs.filter(status__in=ACTIVE_RUNS).first() or runs.exclude(NEVER_STARTED).first()
    if run is None:
        raise NotFound(f"There is no session {session_id!r} of {owner.get_username()}.")
    if run.thread.agent.slug != definition.slug(owner):
        raise Conflict(
            f"The session {session_id!r} belongs to the agent {run.thread.agent.name!r}: use that "
            "one's name.",
            code="other_agent",
        )
    _bind(definition, run.thread_id)
    return run


def place_of(definition: Definition, owner: Any, session_id: str) -> Place:
    run = last_run(definition, owner, session_id)
    family = Family(run.pk)
    calls = ToolCall.objects.filter(run__in=[member.pk for member in family.members()])
    open_calls = calls.filter(status__in=OPEN_CALLS).values_list("run_id", "call_id", "tool")
    tools = {(run_id, call_id): tool for run_id, call_id, tool in open_calls}
    return Place(run.pk, run.thread_id, run.status, family.positions(), tools)


def check_directory(place: Place, named: str) -> None:
    """Raise `Conflict` if the session works in another directory than `named`."""
    check_working_directory(Thread.objects.get(pk=place.thread_id), named)


def check_goes_on(place: Place, session_id: str, what: str, ended: Collection[str]) -> None:
    """Raise `Conflict` if the run of `place` has one of the statuses `ended`.

    `what` is the verb for the message.
    """
    if place.status in ended:
        raise Conflict(
            f"There is nothing to {what}: the last run of the session {session_id!r} is "
            f"{place.status}. Send it a message.",
            code="not_waiting",
        )


def pending(owner: Any, run_id: str) -> list[ApprovalRequest]:
    """Return the pending requests of a run and its subagents that the owner may see."""
    ids = [request.pk for request in Family(run_id).pending_requests()]
    return list(approvals_for(owner).filter(pk__in=ids).order_by("pk"))


def pending_request(approval_id: str) -> ApprovalRequest | None:
    """Return the request if it is pending, else None."""
    found = ApprovalRequest.objects.filter(pk=approval_id, status=ApprovalStatus.PENDING)
    return found.only("is_private", "input").first()


def decide(owner: Any, run_id: str, displayed: Collection[str], value: Any) -> tuple[int, int]:
    """Decide pending requests by the `value` that a program passes to `resume`: see `answers_to`.

    Returns (the number of decisions, the number of requests that are still pending).
    """
    must_have_tools(Run.objects.select_related("thread", "agent_version").get(pk=run_id))
    answers = answers_to(pending(owner, run_id), displayed, value)
    decisions.decide_all(answers, by=owner)
    return len(answers), len(pending(owner, run_id))


def reject(owner: Any, run_id: str, reason: str) -> None:
    """Reject the pending requests that can be rejected, then cancel the run.

    `reason` is stored with both.
    """
    for request in pending(owner, run_id):
        if "reject" in request.allowed_decisions:
            answer = DecisionRequest("reject", request.digest, reason=reason)
            decisions.decide(request.pk, answer, by=owner)
    cancel_run(run_id, by=owner.get_username(), reason=reason or "rejected")


def cancel(owner: Any, run_id: str, reason: str) -> None:
    run = Run.objects.get(pk=run_id)
    if not run.has_ended:
        cancel_run(run_id, by=owner.get_username(), reason=reason)


def go_on(run_id: str, executor: str) -> bool:
    """Assign the run to this process, so that it continues here. Raises `Conflict`.

    Returns False while the lease of a dead process is still valid: try again. Assigns nothing and
    returns True if requests of the run must be decided first, or another live process drives it.
    """
    run = Run.objects.get(pk=run_id)
    if run.executor == executor and run.status != RunStatus.FAILED:
        return True
    if run.status == RunStatus.WAITING and run.wait_reason != WaitReason.CHILDREN:
        return True  # other requests must be decided first
    try:
        resume_orphaned_family(run_id, executor=executor)
    except Conflict as error:
        if error.code != "driven":
            raise
        return not _is_orphan(run)
    return True


def _is_orphan(run: Run) -> bool:
    """Return whether the process of the run, on this machine, has ended."""
    machine, _, rest = run.executor.partition(":")
    if machine != socket.gethostname()[:40]:
        return False
    try:
        os.kill(int(rest.partition(":")[0]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError):
        return False
    return False


def outcome(run_id: str) -> tuple[str, str, str, str]:
    """Return (status, answer, error code, error message) of a run.

    The answer is empty unless the run has completed. With an output schema, it is JSON.
    """
    run = Run.objects.select_related("clock").get(pk=run_id)
    if run.status == RunStatus.COMPLETED and run.structured_output is not None:
        return run.status, dump(run.structured_output), "", ""
    answer = answer_of(run) if run.status == RunStatus.COMPLETED else ""
    message = run.error_message or run.clock.cancel_reason
    return run.status, answer, run.error_code, message


def require_sandbox() -> None:
    """Raise `SetupError` if this machine has no sandbox. Commands never run without one."""
    report = check_host()
    if not report.usable:
        raise SetupError(
            f"No sandbox on this machine: {report.problems[0]} Set sandbox=False to run without "
            "commands and with files in the database."
        )


APPROVE, REJECT = "approve", "reject"
_ALMOST = frozenset(
    {"accept", "accepted", "allow", "approve", "approved", "ok", "true", "y", "yes"}
)
_ID = re.compile("[0-9a-hjkmnp-tv-z]{26}")
_FORMS = (
    "True or 'approve' approves, False or 'reject' rejects, any other text rejects and is the "
    "reason, a dictionary changes fields of the input."
)


def answers_to(
    waiting: Sequence[ApprovalRequest], displayed: Collection[str], value: Any
) -> dict[str, DecisionRequest]:
    """Return the decisions, by the ids of their requests.

    Args:
        waiting: The pending requests.
        displayed: The ids of the requests that the program has seen. If it has seen none, as after
            a restart, a value without ids concerns all of them.
        value: None, or a decision for all these requests, or a dictionary of decisions by id. A
            request that is not in the dictionary remains pending.

    Raises:
        InvalidRequest: If the value is not clear.
        Conflict: If it concerns a request that is not pending.
    """
    if isinstance(value, Mapping) and _has_ids(value):
        named = _named(waiting, value)
        return {request.pk: _answer(request, value[request.pk]) for request in named}
    meant = [request for request in waiting if not displayed or request.pk in displayed]
    if not meant:
        if value is None:
            return {}
        raise Conflict(
            "The session has no pending request that you have seen. Call pending() to get the "
            "pending requests.",
            code="stale",
        )
    if len(meant) > 1 and (value is None or isinstance(value, Mapping)):
        raise InvalidRequest(
            f"{len(meant)} requests are pending: {_listed(meant)}. Pass a dictionary with a "
            "decision for each id, or True or False for all."
        )
    return {request.pk: _answer(request, True if value is None else value) for request in meant}


def _has_ids(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and _ID.fullmatch(key) for key in value)


def _named(waiting: Sequence[ApprovalRequest], value: Mapping[Any, Any]) -> list[ApprovalRequest]:
    """Return the requests whose ids are the keys of `value`. Raises `Conflict` for other ids."""
    ids = {request.pk for request in waiting}
    for key in value:
        if key not in ids:
            raise Conflict(
                f"The request {key!r} is not pending. Pending: {_listed(waiting)}.",
                code="stale",
            )
    return [request for request in waiting if request.pk in value]


def _listed(waiting: Sequence[ApprovalRequest]) -> str:
    return ", ".join(f"{request.pk} ({request.tool})" for request in waiting) or "none"


def _answer(request: ApprovalRequest, value: Any) -> DecisionRequest:
    if isinstance(value, Mapping):
        return _edit(request, value)
    if value is True or value == APPROVE:
        return DecisionRequest(Decision.APPROVE, request.digest)
    if value is False or value == REJECT:
        return DecisionRequest(Decision.REJECT, request.digest)
    if not isinstance(value, str) or not value.strip() or value.strip().lower() in _ALMOST:
        raise InvalidRequest(f"{value!r} is not a decision. {_FORMS}")
    return DecisionRequest(Decision.REJECT, request.digest, reason=value)


def _edit(request: ApprovalRequest, changes: Mapping[Any, Any]) -> DecisionRequest:
    if not changes:
        raise InvalidRequest(f"An empty dictionary changes nothing. {_FORMS}")
    if not all(isinstance(name, str) for name in changes):
        raise InvalidRequest("The names of fields must be texts.")
    call, edited = request.tool_call, dict(changes)
    if call is not None and proposal_kind(request) is None:
        before = request.input if isinstance(request.input, dict) else {}
        spec = AgentSpec.model_validate(request.run.spec)
        edited = with_changes(spec, request.tool, before, changes, request.run)
    return DecisionRequest(Decision.EDIT, request.digest, input=edited)
