"""Read a conversation in parts: the memory and the queries depend on the part, not on its length.

It has the rows of the thread's transcript, those of its subagents, and the decisions of people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Case, F, Min, Q, QuerySet, Sum, When
from django.db.models.fields import IntegerField
from django.utils import timezone

from agents.api.serializers.runs import with_run_columns
from agents.api.serializers.threads import with_thread_columns
from agents.events.read import ROWS_AT_ONCE
from agents.models import ApprovalRequest, Message, Run, Thread, ToolCall, Upload
from agents.selectors.visible import threads_for, unless_private
from agents.services.errors import Conflict, NotFound
from agents.services.files.copies import CopiedFile, files_of
from sandbox.errors import FileError

TURNS_AT_ONCE = 100
BYTES_AT_ONCE = 2_000_000
"""Limit for the messages of a part, and for its calls. A single turn may have more."""
MOST_FILES = 1_000

Place = tuple[int, str, int]
"""The number of a run in its thread, its id, and a turn of the run."""


@dataclass(slots=True)
class Turn:
    """A person's message (turn 0), or a reply of the model with its calls and later notes."""

    place: Place
    messages: Sequence[Message]
    calls: list[ToolCall] = field(default_factory=list)
    decisions: dict[int, list[ApprovalRequest]] = field(default_factory=dict)
    """The requests for approval of each call, by the key of the call."""

    @property
    def run_id(self) -> str:
        return self.place[1]

    @property
    def number(self) -> int:
        return self.place[2]


@dataclass(frozen=True, slots=True)
class RunHead:
    """A run, with the columns of `RunShape`. Its turns follow.

    `requests` are those that no call has made, for example for more tokens.
    """

    run: Run
    uploads: list[Upload]
    requests: list[ApprovalRequest]


@dataclass(frozen=True, slots=True)
class Usage:
    """The sums of all runs, without copies in forks. `microusd` is None if a price is unknown."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    turns: int
    microusd: int | None

    @property
    def tokens(self) -> int:
        read_and_written = self.cache_read_tokens + self.cache_write_tokens
        return self.input_tokens + self.output_tokens + read_and_written


@dataclass(frozen=True, slots=True)
class Files:
    """The present files of the agent, at most `MOST_FILES`. `problem`: why they are unavailable."""

    listed: list[CopiedFile]
    is_cut: bool = False
    problem: str = ""


class Conversation:
    """A thread for its owner. Raises `NotFound` unless `person` owns it."""

    def __init__(self, person: AbstractBaseUser, thread_id: str) -> None:
        found = with_thread_columns(threads_for(person)).select_related("agent", "owner")
        thread = found.filter(pk=thread_id).first()
        if thread is None:
            raise NotFound(f"You have no thread {thread_id!r}.", code="unknown_thread")
        self.thread: Thread = thread
        self.person = person
        self.read_at: datetime = timezone.now()

    def parts(self) -> Iterator[RunHead | Turn]:
        """Yield each run of the thread, followed by its turns."""
        return self._parts(Run.objects.filter(thread=self.thread))

    def parts_of_subagents(self) -> Iterator[RunHead | Turn]:
        """Yield each run of the thread's subagents, followed by its turns."""
        return self._parts(Run.objects.filter(thread__root=self.thread))

    def usage(self) -> Usage:
        # A condition on two tables would read all runs.
        threads = Thread.objects.filter(Q(pk=self.thread.pk) | Q(root=self.thread.pk))
        family = Run.objects.filter(thread__in=threads.values("pk"))
        numbers = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        is_known = Case(When(clock__cost_known=True, then=1), default=0)
        found: dict[str, Any] = family.filter(is_copy=False).aggregate(
            **{name: Sum(f"clock__{name}", default=0) for name in numbers},
            turns=Sum("clock__turn", default=0),
            microusd=Sum("clock__cost_microusd", default=0),
            known=Min(is_known, output_field=IntegerField()),
        )
        if found.pop("known") == 0:
            found["microusd"] = None
        return Usage(**found)

    def files(self) -> Files:
        try:
            found = list(islice(files_of(self.thread).listed(), MOST_FILES + 1))
        except Conflict as error:
            return Files([], problem=error.message)
        except FileError as error:
            return Files([], problem=str(error))
        return Files(found[:MOST_FILES], is_cut=len(found) > MOST_FILES)

    def _parts(self, runs: QuerySet[Run]) -> Iterator[RunHead | Turn]:
        after: Place | None = None
        has_more = True
        while has_more:
            self._check_still_readable()
            turns, has_more = _turns_after(runs, after)
            self._add_decisions(turns)
            before = after[1] if after else ""
            heads = self._heads({turn.run_id for turn in turns} - {before})
            for run_id, of_run in groupby(turns, lambda turn: turn.run_id):
                if run_id != before:
                    yield heads[run_id]
                yield from of_run
            after = turns[-1].place if turns else after

    def _check_still_readable(self) -> None:
        """Raise `NotFound` if the thread has been erased, or its owner deactivated."""
        kept = Thread.objects.filter(pk=self.thread.pk, owner=self.person.pk, owner__is_active=True)
        if not kept.exists():
            raise NotFound("The conversation was erased during the export.", code="unknown_thread")

    def _heads(self, run_ids: set[str]) -> dict[str, RunHead]:
        if not run_ids:
            return {}
        uploads = defaultdict(list)
        for upload in Upload.objects.filter(run__in=run_ids).order_by("pk"):
            uploads[upload.run_id].append(upload)
        requests = defaultdict(list)
        for request in self._requests().filter(run__in=run_ids, tool_call=None):
            requests[request.run_id].append(request)
        return {
            run.pk: RunHead(run, uploads[run.pk], requests[run.pk])
            for run in with_run_columns(Run.objects.filter(pk__in=run_ids))
        }

    def _add_decisions(self, turns: list[Turn]) -> None:
        by_call = {call.pk: turn for turn in turns for call in turn.calls}
        if not by_call:
            return
        # The call has the input.
        rows = self._requests().filter(tool_call__in=by_call).defer("input", "preview")
        for row in rows:
            if row.tool_call_id is not None:
                found = by_call[row.tool_call_id].decisions
                found.setdefault(row.tool_call_id, []).append(row)

    def _requests(self) -> QuerySet[ApprovalRequest]:
        rows = ApprovalRequest.objects.filter(unless_private(self.person))
        return rows.select_related("decided_by", "first_approver").order_by("pk")


def _turns_after(runs: QuerySet[Run], after: Place | None) -> tuple[list[Turn], bool]:
    """Return whole turns after the place `after` with their calls, and whether there are more."""
    messages = Message.objects.filter(run__in=runs).annotate(number=F("run__number"))
    if after is not None:
        number, run_id, turn = after
        in_run = Q(run_id=run_id, turn__gt=turn) | Q(run_id__gt=run_id)
        messages = messages.filter(Q(number__gt=number) | (Q(number=number) & in_run))
    ordered = messages.order_by("number", "run_id", "turn", "position")
    turns: list[Turn] = []
    size = 0
    for place, rows in groupby(ordered.iterator(chunk_size=ROWS_AT_ONCE), _place):
        if len(turns) == TURNS_AT_ONCE:
            return _with_calls(turns, has_more=True)
        of_turn = list(rows)
        size += sum(len(message.content) for message in of_turn)
        if turns and size > BYTES_AT_ONCE:
            return _with_calls(turns, has_more=True)
        turns.append(Turn(place, of_turn))
    return _with_calls(turns, has_more=False)


def _place(row: Any) -> Place:
    return row.number, row.run_id, row.turn


def _with_calls(turns: list[Turn], *, has_more: bool) -> tuple[list[Turn], bool]:
    """Return the turns with their calls, without the last ones if their calls are too large."""
    if not turns:
        return turns, has_more
    by_place = {(turn.run_id, turn.number): turn for turn in turns}
    first, last = turns[0], turns[-1]
    rows = ToolCall.objects.filter(
        ~Q(run=first.run_id) | Q(turn__gte=first.number),
        ~Q(run=last.run_id) | Q(turn__lte=last.number),
        run__in={turn.run_id for turn in turns},
    ).order_by("run__number", "run_id", "turn", "position")
    size = 0
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        turn = by_place[row.run_id, row.turn]
        size += len(row.input) + len(row.edited_input) + len(row.result)
        if size > BYTES_AT_ONCE and turn is not first:
            return turns[: turns.index(turn)], True
        turn.calls.append(row)
    return turns, has_more
