"""A quota limits the bytes that the forks of a user copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import NONE, NOW
from agents.models import Run, StateFile, Thread
from agents.services.errors import Conflict
from agents.services.files.workspace_care import kept_workspaces, remove_workspace
from agents.settings import DataSettings
from tests.agents.api.rows import answer_run, client_for, make_agent, make_run, make_user, post
from tests.agents.api.test_locks import during
from tests.agents.services.files.test_uploads import directory

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 1_000


@pytest.fixture(autouse=True)
def _limit(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "FORK_BYTES": 2 * SIZE + 1}


@pytest.fixture(params=["rows", "directories"])
def run(request: pytest.FixtureRequest) -> Run:
    """Create a run of ann's whose thread has one file."""
    make_agent(sandbox=request.param == "directories")
    run = make_run(make_user("ann"))
    answer_run(run, "Done.")
    if request.param == "rows":
        StateFile.objects.create(thread=run.thread, path="/notes.md", content=b"x" * SIZE)
    else:
        (directory(run.thread).parent / "workspace" / "notes.md").write_bytes(b"x" * SIZE)
    return run


def fork(run: Run, files: str = NOW) -> Any:
    return post(client_for(run.owner), f"/api/v1/runs/{run.pk}/fork", {"files": files})


def forks() -> int:
    return Thread.objects.exclude(forked_from=None).count()


@pytest.mark.slow
def test_one_fork_too_many_is_refused_and_leaves_nothing(run: Run) -> None:
    assert [fork(run).status_code for _ in range(2)] == [201, 201]
    before = sorted(entry.key for entry in kept_workspaces())
    refused = fork(run)
    assert (refused.status_code, refused.json()["code"]) == (409, "fork_quota")
    assert "2,001 bytes" in refused.json()["detail"]
    assert sorted(entry.key for entry in kept_workspaces()) == before
    assert forks() == 2
    # A fork without files costs nothing, and other users have their own quotas.
    assert fork(run, NONE).status_code == 201
    User.objects.filter(username="ann").update(username="was-ann")
    bob = make_user("ann")
    Run.objects.filter(pk=run.pk).update(owner=bob)
    Thread.objects.filter(pk=run.thread_id).update(owner=bob)
    run.refresh_from_db()
    assert fork(Run.objects.get(pk=run.pk)).status_code == 201


def test_without_a_limit_forks_are_unlimited(run: Run, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "FORK_BYTES": 0}
    assert [fork(run).status_code for _ in range(4)] == [201] * 4


@pytest.mark.parametrize("run", ["directories"], indirect=True)
def test_pruned_forks_no_longer_count(run: Run) -> None:
    made = [fork(run).json()["thread"]["id"] for _ in range(2)]
    assert fork(run).status_code == 409
    (kept,) = [entry for entry in kept_workspaces() if entry.key == made[0]]
    remove_workspace(kept)
    assert fork(run).status_code == 201
    assert (DataSettings.now().workspaces / made[1]).is_dir()


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize("run", ["rows"], indirect=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")
def test_of_two_concurrent_forks_only_one_fits_the_limit(run: Run) -> None:
    assert connection.vendor == "postgresql"
    fork(run)
    owner = run.owner

    def one(pause: Callable[[], None]) -> Any:
        with prepared_fork(run, ForkRequest(files=NOW), by=owner) as made:
            complete_with_pause(made, pause)

    def complete_with_pause(made: Any, pause: Callable[[], None]) -> None:
        with transaction.atomic():
            complete_fork(made)
            pause()

    first, second = during(one, lambda: one(lambda: None))
    assert first is None
    assert isinstance(second, Conflict), second
    assert second.code == "fork_quota"
    assert forks() == 2
