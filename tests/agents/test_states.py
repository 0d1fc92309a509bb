"""Statuses change only as the tables allow, in every writer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.db import DatabaseError, models, transaction

from agents.models import ApprovalRequest, Run, ToolCall
from agents.states import (
    ACTIVE_RUNS,
    APPROVAL_TRANSITIONS,
    ENDED_RUNS,
    FINISHED_CALLS,
    OPEN_CALLS,
    RUN_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    ApprovalStatus,
    IllegalTransition,
    RunStatus,
    ToolCallStatus,
    check_transition,
)
from tests.agents.engine.by_hand import new_run, parked
from tests.agents.transition_guard import guarded_transitions

pytestmark = pytest.mark.both_databases

Table = dict[str, frozenset[str]]

TABLES: dict[str, tuple[Table, type[models.TextChoices]]] = {
    "runs": (RUN_TRANSITIONS, RunStatus),
    "calls": (TOOL_CALL_TRANSITIONS, ToolCallStatus),
    "approvals": (APPROVAL_TRANSITIONS, ApprovalStatus),
}


def reachable(table: Table, start: str) -> set[str]:
    found, fresh = {start}, {start}
    while fresh:
        fresh = {after for before in fresh for after in table[before]} - found
        found |= fresh
    return found


def all_pairs() -> Iterator[tuple[str, str, str]]:
    for name, (_, statuses) in TABLES.items():
        yield from ((name, before, after) for before, after in product(statuses.values, repeat=2))


@pytest.mark.parametrize("name", TABLES)
def test_every_status_is_in_its_table_and_can_be_reached(name: str) -> None:
    table, statuses = TABLES[name]
    assert set(table) == set(statuses.values)
    assert reachable(table, "pending") == set(statuses.values)


def test_every_pair_of_statuses_is_legal_or_refused_with_the_legal_ones() -> None:
    for name, before, after in all_pairs():
        table = TABLES[name][0]
        if after in table[before]:
            check_transition(table, before, after)
            continue
        with pytest.raises(IllegalTransition) as refused:
            check_transition(table, before, after)
        assert f"{before} cannot become {after}" in str(refused.value)
        assert all(legal in str(refused.value) for legal in table[before])


def test_no_status_follows_itself_or_comes_back_to_the_first() -> None:
    for name, (table, _) in TABLES.items():
        for before, following in table.items():
            assert before not in following, (name, before)
            assert "pending" not in following, (name, before)


def test_a_run_that_has_not_ended_can_be_cancelled_and_one_that_has_cannot() -> None:
    for status, following in RUN_TRANSITIONS.items():
        assert ("cancelled" in following) == (status not in ENDED_RUNS)
    assert ACTIVE_RUNS | ENDED_RUNS | {"pending"} == set(RUN_TRANSITIONS)


def test_only_a_failed_run_comes_back() -> None:
    assert {status for status in ENDED_RUNS if RUN_TRANSITIONS[status]} == {"failed"}


def test_only_started_calls_have_an_outcome() -> None:
    """Except for an edit of the memory, which the decision itself makes."""
    outcomes = {"succeeded", "failed", "interrupted"}
    for status, following in TOOL_CALL_TRANSITIONS.items():
        if status != "started":
            assert outcomes & following == ({"succeeded"} if status == "waiting" else set())
    assert {"pending", "waiting", "approved", "started"} == OPEN_CALLS
    assert not FINISHED_CALLS & OPEN_CALLS


def test_a_waiting_call_starts_only_after_an_approval() -> None:
    before_start = {s for s, following in TOOL_CALL_TRANSITIONS.items() if "started" in following}
    assert before_start == {"pending", "approved"}
    assert {s for s, following in TOOL_CALL_TRANSITIONS.items() if "approved" in following} == {
        "waiting"
    }


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_database_can_refuse_the_same_transitions_as_the_tables() -> None:
    """Other tests use these triggers to check every writer, also raw SQL."""
    _, run = new_run()
    [request] = parked(run)
    rows: dict[str, tuple[type[models.Model], object]] = {
        "runs": (Run, run.pk),
        "calls": (ToolCall, request.tool_call_id),
        "approvals": (ApprovalRequest, request.pk),
    }
    for name, (model, key) in rows.items():
        table = TABLES[name][0]
        row = model._default_manager.filter(pk=key)
        for before in table:
            row.update(status=before)
            with guarded_transitions():
                assert {after for after in table if is_let(row, after)} == table[before] | {before}


def is_let(row: models.QuerySet[Any], status: str) -> bool:
    """Return whether the database accepts this status, and undo the change."""
    try:
        with transaction.atomic():
            row.update(status=status)
            transaction.set_rollback(True)
    except DatabaseError:
        return False
    return True
