"""Outcomes of calls: how they are stored in the journal, and shown to clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.engine.calls.results import finished_event, render_result
from agents.engine.errors import StopReason
from agents.engine.session import Session
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Call, CommitRefused, Outcome, write_results
from agents.events.append import EventDraft, dump
from agents.events.preview import preview
from agents.kernel.middleware import Commit, CommitAgain
from agents.middleware.base import ToolResult, error
from agents.settings import MessageSettings
from agents.states import ToolCallStatus


async def store_outcomes(
    session: Session, outcomes: Sequence[Outcome], drafts: Sequence[EventDraft] = ()
) -> None:
    """Store outcomes, and then update the calls in memory to the journal's state.

    `drafts` are events that are written before those of the outcomes. If a tool's rows cannot be
    written, its call fails with the reason. Raises `FenceLost`.
    """
    database = session.database
    # A tool may commit other rows with its result, which can need any locks.
    alone = any(
        outcome.commit or any(commit.alone for commit in outcome.commits) for outcome in outcomes
    )
    write = database.run if alone else database.share
    while True:
        try:
            await write(write_results, session.writer, outcomes, drafts)
            break
        except CommitRefused as refused:
            outcomes = [_refused(refused) if each is refused.outcome else each for each in outcomes]
    for outcome in outcomes:
        call = outcome.call
        call.status = outcome.status
        call.result = outcome.result
        call.is_error = outcome.is_error
        call.code = outcome.code
    for outcome in outcomes:
        committed(outcome.commits)


async def commit_with(
    database: Database, write: Callable[[], None], commits: Sequence[Commit], *, alone: bool
) -> None:
    """Run `write` in a transaction, then notify the middleware of `commits`.

    `write` itself calls the functions in `commits`. If one of them raises `CommitAgain`, `write`
    runs again. With `alone`, the transaction has no writes of other runs.
    """
    alone = alone or any(commit.alone for commit in commits)
    try:
        await (database.run(write) if alone else database.share(write))
    except CommitAgain as again:
        await _commit_again(database, write, again)
    committed(commits)


async def _commit_again(database: Database, write: Callable[[], None], again: CommitAgain) -> None:
    while True:
        await again.prepare()
        try:
            return await database.run(write)
        except CommitAgain as another:
            again = another


def committed(commits: Sequence[Commit]) -> None:
    """Notify middleware that its rows are committed."""
    for commit in commits:
        if commit.then is not None:
            commit.then()


def outcome_of(call: Call, result: ToolResult) -> Outcome:
    """Return the outcome of a call whose tool returned `result`."""
    if call.edited_input and not result.blocks:
        # Invariant 4: the history keeps the model's own call, so the model must learn the input
        # that ran.
        changed = preview(call.edited_input)
        note = f"[This ran with an input changed by a person: {changed}]"
        text = result.content if isinstance(result.content, str) else dump(result.content)
        result = replace(result, content=f"{text}\n\n{note}")
    rendered, shown = render_result(result, MessageSettings.now().RESULT_BYTES)
    status = ToolCallStatus.FAILED if result.is_error else ToolCallStatus.SUCCEEDED
    outcome = Outcome(
        call, status, rendered, result.is_error, result.code, list(result.events), result.commit
    )
    outcome.events.append(finished_event(call, shown, is_error=result.is_error, code=result.code))
    return outcome


def _refused(refused: CommitRefused) -> Outcome:
    problem, earlier = refused.problem, refused.outcome
    found = outcome_of(earlier.call, error(problem.message, problem.code))
    return replace(found, commits=earlier.commits)


def stopped_outcome(call: Call, reason: StopReason) -> Outcome:
    text = {
        StopReason.CANCEL: "The run was cancelled while this call ran; it was stopped half-way.",
        StopReason.WALL_TIME: "The run's time limit ended this call half-way.",
        StopReason.DRAIN: "The worker was shut down while this call ran; it was stopped half-way. "
        "Check before you repeat it.",
    }[reason]
    status = ToolCallStatus.INTERRUPTED if reason is StopReason.DRAIN else ToolCallStatus.CANCELLED
    outcome = Outcome(call, status, json.dumps(text), is_error=True, code=status.value)
    outcome.events.append(finished_event(call, text, is_error=True, code=status.value))
    return outcome
