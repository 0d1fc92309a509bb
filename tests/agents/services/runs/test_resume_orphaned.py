"""Resume an orphaned run that waits for its subagents."""

from __future__ import annotations

import time

import pytest
from django.db import transaction

from agents.models import POOL, Run, RunClock
from agents.services.errors import Conflict
from agents.services.runs.control import resume_orphaned_family
from tests.support.runs import make_agent, make_user, start_run
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db(transaction=True)

GONE = "elsewhere:1:x"


def orphans() -> tuple[Run, list[Run]]:
    """Create a parent with three subagents: one driven, one waiting for approval, one ended."""
    user = make_user()
    make_agent(user)
    run = start_run(user, executor=GONE)
    with transaction.atomic():
        children = delegate(run, "a", "b", "c")
    Run.objects.filter(pk=run.pk).update(status="waiting", wait_reason="children")
    for child, status in zip(children, ("running", "waiting", "completed"), strict=True):
        Run.objects.filter(pk=child.pk).update(status=status)
    run.refresh_from_db()
    return run, children


def test_the_new_executor_gets_all_active_runs_and_only_these() -> None:
    run, children = orphans()
    resume_orphaned_family(run.pk, executor=POOL)
    rows = [Run.objects.get(pk=row.pk) for row in (run, *children)]
    assert [row.executor for row in rows] == [POOL, POOL, POOL, GONE]
    assert [row.status for row in rows] == ["waiting", "running", "waiting", "completed"]


def test_driven_runs_are_not_taken_away() -> None:
    run, children = orphans()
    RunClock.objects.filter(run=children[0]).update(lease_until=time.time() + 60)
    with pytest.raises(Conflict) as refused:
        resume_orphaned_family(run.pk, executor=POOL)
    assert refused.value.code == "driven"
    assert Run.objects.filter(executor=POOL).count() == 0


def test_a_subagent_is_not_taken_over_alone() -> None:
    _, children = orphans()
    with pytest.raises(Conflict) as refused:
        resume_orphaned_family(children[0].pk, executor=POOL)
    assert refused.value.code == "subagent"


def test_a_run_that_waits_for_a_person_is_not_resumed() -> None:
    run, _ = orphans()
    Run.objects.filter(pk=run.pk).update(wait_reason="approval")
    with pytest.raises(Conflict, match="decide"):
        resume_orphaned_family(run.pk, executor=POOL)
