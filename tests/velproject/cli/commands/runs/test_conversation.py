"""Queued tasks that were executed or removed before the session comes to them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.models import Run
from agents.services.runs.control import cancel_run
from agents.services.runs.start import RunRequest
from tests.support.runs import drive_to_end, make_agent, make_user, start_run
from velproject.cli.commands.runs.conversation import Conversation

pytestmark = pytest.mark.django_db(transaction=True)


def conversation_with(*queued: Run) -> tuple[Conversation, list[str]]:
    """Return a conversation with these queued runs, and the ids of the runs that it drives."""
    driven: list[str] = []

    def drive(run: Run, *, is_known: bool) -> int:
        driven.append(run.pk)
        return 0

    display = SimpleNamespace(note=lambda *_: None)
    driver = SimpleNamespace(drive=drive, display=display, owner=queued[0].owner)
    conversation = Conversation(cast(Any, driver), RunRequest("tester", ""), None)
    conversation._queued = [Run.objects.get(pk=run.pk) for run in queued]
    return conversation, driven


def test_a_queued_run_that_has_ended_is_shown_and_a_removed_one_is_not() -> None:
    user = make_user()
    make_agent(user)
    first = start_run(user, key="s", source="cli")
    fast = start_run(user, key="s", source="cli", queue=True)
    removed = start_run(user, key="s", source="cli", queue=True)
    conversation, driven = conversation_with(fast, removed)
    cancel_run(removed.pk, by="ada")
    drive_to_end(first)
    drive_to_end(fast)
    assert conversation.take_back() is None
    assert conversation.drive_queued(0) == 0
    assert driven == [fast.pk]


def test_the_newest_run_that_waits_is_taken_back() -> None:
    user = make_user()
    make_agent(user)
    start_run(user, key="s", source="cli")
    waiting = start_run(user, "Second", key="s", source="cli", queue=True)
    removed = start_run(user, "Third", key="s", source="cli", queue=True)
    conversation, _ = conversation_with(waiting, removed)
    cancel_run(removed.pk, by="ada")
    assert conversation.take_back() == "Second"
    assert Run.objects.get(pk=waiting.pk).status == "cancelled"
    assert conversation.take_back() is None
