"""The runs below a run."""

from __future__ import annotations

import pytest
from django.db import transaction

from agents.models import Run
from agents.selectors.family import (
    descendants_of,
    goes_on_alone,
    in_tree_order,
    root_of,
    with_child_count,
)
from agents.selectors.visible import runs_for
from tests.support.runs import make_agent, make_user, start_run
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db


def family() -> tuple[Run, Run, Run, Run]:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    with transaction.atomic():
        first, second = delegate(run, "a", "b")
        (deeper,) = delegate(first, "c", name="plan")
    return run, first, second, deeper


def test_parents_come_before_their_children_and_a_tree_is_read_downwards() -> None:
    run, first, second, deeper = family()
    members = descendants_of(run.pk)
    assert members == [first, second, deeper]
    assert in_tree_order(run.pk, members) == [first, deeper, second]
    assert descendants_of(first.pk) == [deeper]
    assert root_of(deeper) == run
    assert [row.child_count for row in with_child_count(Run.objects.order_by("pk"))] == [2, 1, 0, 0]


def test_each_level_is_one_query(django_assert_num_queries: object) -> None:
    run, *_ = family()
    with django_assert_num_queries(3):  # type: ignore[operator]
        descendants_of(run.pk)


def test_the_number_of_examined_runs_is_limited() -> None:
    run, first, *_ = family()
    assert descendants_of(run.pk, limit=1) == [first]


def test_an_invisible_run_hides_its_descendants() -> None:
    run, first, _second, deeper = family()
    assert descendants_of(run.pk, runs_for(make_user("eve"))) == []
    shown = descendants_of(run.pk, Run.objects.exclude(pk=first.pk))
    assert deeper not in shown


@pytest.mark.parametrize(
    ("status", "wake_at", "expected"),
    [
        ("queued", None, True),
        ("running", None, True),
        ("waiting", None, False),
        ("waiting", 1.0, True),
        ("pending", None, False),
    ],
)
def test_a_family_continues_automatically_while_a_member_works_or_waits_for_a_time(
    status: str, wake_at: float | None, expected: bool
) -> None:
    run, first, *_ = family()
    run.status, first.status, first.wake_at = "waiting", status, wake_at
    assert goes_on_alone([run, first]) is expected


def test_a_queued_message_continues_automatically() -> None:
    run, *_ = family()
    run.status = "pending"
    assert goes_on_alone([run])
