"""Delegated runs: starting them, their concurrency, and notification of the parent.

To change which children are active, or to end one, hold the lock of the parent's row: then two
children that end together see each other, and the parent wakes exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.events.append import EventDraft, append_events, dump
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.preview import preview
from agents.kernel.row_hooks import RowHooks
from agents.models import Message, MessageRole, Run, RunClock, Thread, ToolCall
from agents.models.message import AGENT
from agents.services.errors import InvalidRequest
from agents.services.runs.wake import enqueue_run, wake_run
from agents.services.threads import first_words
from agents.states import (
    ACTIVE_RUNS,
    ENDED_RUNS,
    RUN_TRANSITIONS,
    RunStatus,
    WaitReason,
    check_transition,
)

MAX_CHILDREN = 500
"""The limit of subagents that one run may start: an agent in a loop would fill the database."""
MAX_FAMILY = 2_000
"""The limit of subagents below one thread, at any depth."""


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """A child to create. `spec` is the dumped `AgentSpec` that it runs with.

    `note` is additional text with its task. `writes` are called with the new run and the id of the
    call: they store the data that features let it inherit.
    """

    index: int
    spec: dict[str, Any]
    message: str
    note: str = ""
    writes: Sequence[Callable[[Run, str], None]] = ()


def start_children(
    parent: Run, call: ToolCall, orders: Sequence[ChildOrder], *, at_once: int
) -> list[Run]:
    """Return the children of `call`, and create them if necessary; `at_once` may run at a time.

    The caller holds the lock of the parent's row. Raises `InvalidRequest` if there are too many.
    """
    if there := children_of(call):
        return there
    _check_room(parent, len(orders))
    free = at_once - parent.children.filter(status__in=ACTIVE_RUNS).count()
    children = [
        _start_child(parent, call, order, may_begin=number < free)
        for number, order in enumerate(orders)
    ]
    append_events(parent.id, [_started(child, call.call_id) for child in children])
    return children


def children_of(call: ToolCall) -> list[Run]:
    """Return the children of a call, in the order of its tasks."""
    return list(Run.objects.filter(parent_call=call).order_by("parent_index"))


def _check_room(parent: Run, more: int) -> None:
    if parent.children.count() + more > MAX_CHILDREN:
        raise InvalidRequest(
            f"A run can start {MAX_CHILDREN} subagents in total, and this would exceed the limit. "
            "Continue with the results that you have."
        )
    root = parent.thread.root_id or parent.thread_id
    if Thread.objects.filter(root_id=root).count() + more > MAX_FAMILY:
        raise InvalidRequest(
            f"This conversation already has the maximum of {MAX_FAMILY} subagents. Do the task "
            "yourself."
        )


def _start_child(parent: Run, call: ToolCall, order: ChildOrder, *, may_begin: bool) -> Run:
    above = parent.thread
    thread = Thread.objects.create(
        agent_id=above.agent_id,
        owner_id=above.owner_id,
        root_id=above.root_id or above.pk,
        title=first_words(order.message),
        host=above.host,
        workspace_path=above.workspace_path,
        workspace_rules=above.workspace_rules,
        time_zone=above.time_zone,
        prompt_values=above.prompt_values,
    )
    child = Run.objects.create(
        thread=thread,
        number=1,
        parent=parent,
        parent_call=call,
        parent_index=order.index,
        depth=parent.depth + 1,
        subagent=order.spec["subagent"],
        subagent_spec=order.spec,
        agent_version_id=parent.agent_version_id,
        owner_id=parent.owner_id,
        status=RunStatus.QUEUED if may_begin else RunStatus.PENDING,
        executor=parent.executor,
        source="subagent",
        trigger=parent.trigger,
        has_begun=True,
        opening_note=order.note,
    )
    for write in order.writes:
        write(child, call.call_id)
    RunClock.objects.create(run=child)
    text = [{"type": "text", "text": order.message}]
    Message.objects.create(
        run=child, turn=0, author=AGENT, role=MessageRole.USER, content=dump(text)
    )
    if may_begin:
        enqueue_run(child)
    return child


def _started(child: Run, call_id: str) -> EventDraft:
    return SubagentStarted(
        child_run_id=child.id,
        name=child.subagent,
        call_id=call_id,
        status=child.status,
        task=preview(child.thread.title),
    )


def child_ended(child: Run, *, wake: bool = True) -> None:
    """Notify the parent of an ended run, and start the next of its siblings.

    The caller holds the locks of the parent's and the child's rows. Without `wake` the parent is
    about to end itself.
    """
    if child.parent_id is None:
        return
    parent = Run.objects.get(pk=child.parent_id)
    if parent.has_ended:
        return
    if not _is_reported(parent, child):
        append_events(parent.id, [_finished(child)])
    if not wake:
        return
    _start_next(parent)
    wait = (parent.status, parent.wait_reason)
    if wait == (RunStatus.WAITING, WaitReason.CHILDREN) and not awaited(parent):
        wake_run(parent, "its subagents have ended")


def _is_reported(parent: Run, child: Run) -> bool:
    """Return whether the parent had ended before this child, and was resumed."""
    if child.status != RunStatus.CANCELLED:
        return False
    events = parent.events.filter(type=SubagentFinished.type, data__contains=child.pk)
    return events.exists()


def _finished(child: Run, *, status: str = "") -> EventDraft:
    call_id = child.parent_call.call_id if child.parent_call else ""
    return SubagentFinished(
        child_run_id=child.id, name=child.subagent, call_id=call_id, status=status or child.status
    )


def report_unfinished_children(parent: Run, children: Sequence[Run]) -> None:
    """Write the events about children that a driver still has to end, before their parent ends.

    The caller has requested their cancellation, and holds the lock of the parent's row.
    """
    append_events(parent.id, [_finished(child, status=RunStatus.CANCELLED) for child in children])


def report_ended_children(parent: Run) -> None:
    """Write the missing events about children that ended while the parent had ended.

    The caller holds the lock of the parent's row.
    """
    events = parent.events.filter(type=SubagentFinished.type).values_list("data", flat=True)
    reported = {json.loads(data)["child_run_id"] for data in events}
    ended = parent.children.filter(status__in=ENDED_RUNS).exclude(pk__in=reported)
    children = ended.select_related("parent_call").order_by("ended_at", "pk")
    append_events(parent.id, [_finished(child) for child in children])


def awaited(parent: Run) -> bool:
    """Return whether a child that the parent waits for has not ended."""
    return parent.children.filter(is_awaited=True).exclude(status__in=ENDED_RUNS).exists()


def _start_next(parent: Run) -> None:
    limit = parent.spec.get("max_concurrent_subagents", 5)
    free = limit - parent.children.filter(status__in=ACTIVE_RUNS).count()
    if free <= 0:
        return
    waiting = parent.children.select_for_update(no_key=True, of=("self",)).filter(
        status=RunStatus.PENDING
    )
    for child in waiting.order_by("pk")[:free]:
        check_transition(RUN_TRANSITIONS, child.status, RunStatus.QUEUED)
        child.status = RunStatus.QUEUED
        child.save(update_fields=["status"])
        enqueue_run(child)


def answer_of(run: Run) -> str:
    """Return the text of the run's last reply, or ""."""
    last = (
        Message.objects.filter(run=run, role=MessageRole.ASSISTANT)
        .order_by("-turn")
        .values_list("content", flat=True)
        .first()
    )
    blocks = json.loads(last) if last else []
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


class SubagentRows(RowHooks):
    """A parent is notified of the ends of its children."""

    order = 300

    def ended(self, run: Run, *, wake: bool) -> None:
        child_ended(run, wake=wake)

    def resumed(self, run: Run, *, had_ended: bool) -> None:
        if had_ended:
            report_ended_children(run)
