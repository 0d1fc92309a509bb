"""Fork a run from its page."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Message, Run, Thread
from tests.agents.api.rows import make_user
from tests.support import runs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> Run:
    user = runs.make_user()
    runs.make_agent(user)
    made = runs.drive_to_end(runs.start_run(user, "Say hello"))
    assert made.status == "completed", made.error_message
    return made


def browser(name: str = "ada") -> Any:
    found = Client()
    found.force_login(User.objects.get(username=name))
    return found


def test_the_form_offers_each_step_and_selects_the_requested_one(run: Run) -> None:
    text = browser().get(f"/runs/{run.pk}/fork/?step=0").content.decode()
    assert '<option value="0" selected>' in text
    assert "Say hello" in text
    assert '<option value="1" selected>step 1 (the last)' in (
        browser().get(f"/runs/{run.pk}/fork/?step=99").content.decode()
    )


def test_a_fork_opens_the_new_run_and_keeps_the_original(run: Run) -> None:
    before = list(Message.objects.filter(run=run).values())
    answer = browser().post(
        f"/runs/{run.pk}/fork/", {"step": "1", "message": "Again", "files": "none"}
    )
    made = Run.objects.get(thread__forked_from=run, is_copy=False)
    assert answer["Location"] == f"/runs/{made.pk}/"
    assert Message.objects.get(run=made, turn=0).text == "Again"
    assert list(Message.objects.filter(run=run).values()) == before


def test_a_refused_fork_shows_the_reason_and_creates_nothing(run: Run) -> None:
    answer = browser().post(f"/runs/{run.pk}/fork/", {"step": "1", "message": " "})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()
    assert Thread.objects.count() == 1


def test_another_user_cannot_fork_a_run(run: Run) -> None:
    make_user("mallory")
    for answer in (
        browser("mallory").get(f"/runs/{run.pk}/fork/"),
        browser("mallory").post(f"/runs/{run.pk}/fork/", {"message": "Mine now"}),
    ):
        assert answer.status_code == 404
    assert Thread.objects.count() == 1
