"""A run's page, for its owner, for approvers and for superusers."""

from __future__ import annotations

import json
import tracemalloc
from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from agents.events.append import dump
from agents.models import Message, Run, RunClock
from tests.agents.web.conftest import SignIn
from tests.support import site_writer

CANCEL, FOLLOW_UP = 'id="cancel"', 'name="message"'


def test_the_owner_may_cancel_and_continue(run: str, sign_in: SignIn) -> None:
    html = sign_in("olga").get(f"/runs/{run}/").content.decode()
    assert CANCEL in html
    assert FOLLOW_UP in html


def test_an_approver_watches_the_run_of_another_without_acting_on_it(
    run: str, sign_in: SignIn
) -> None:
    ada = sign_in("ada", approver=True)
    assert ada.get(f"/runs/{run}/").status_code == 404
    site_writer.ask(run, "send", {})
    html = ada.get(f"/runs/{run}/").content.decode()
    assert CANCEL not in html
    assert FOLLOW_UP not in html
    assert "started by olga" in html
    assert "csrfmiddlewaretoken" in html
    ada.post(f"/runs/{run}/cancel/")
    assert site_writer.run(run)["status"] == "waiting"
    assert ada.post(f"/runs/{run}/messages/", {"message": "hi"}).status_code == 404


def test_a_superuser_may_cancel_but_not_write_for_the_owner(run: str, sign_in: SignIn) -> None:
    root = sign_in("root", superuser=True)
    html = root.get(f"/runs/{run}/").content.decode()
    assert CANCEL in html
    assert FOLLOW_UP not in html
    assert root.post(f"/runs/{run}/messages/", {"message": "hi"}).status_code == 404
    root.post(f"/runs/{run}/cancel/")
    assert site_writer.run(run)["status"] == "cancelled"


def test_cancelling_ends_the_run(run: str, sign_in: SignIn) -> None:
    answer = sign_in("olga").post(f"/runs/{run}/cancel/")
    assert answer["Location"] == f"/runs/{run}/"
    assert site_writer.run(run)["status"] == "cancelled"


def test_a_follow_up_to_a_run_that_has_ended_leads_to_its_own_page(
    run: str, sign_in: SignIn
) -> None:
    Run.objects.filter(pk=run).update(status="completed")
    answer = sign_in("olga").post(f"/runs/{run}/messages/", {"message": "More", "key": "k"})
    following = site_writer.newest_run()
    assert answer["Location"] == f"/runs/{following}/"
    assert site_writer.run(following)["thread"] == site_writer.run(run)["thread"]


def test_a_follow_up_to_a_busy_run_waits_and_stays_on_the_page(run: str, sign_in: SignIn) -> None:
    olga = sign_in("olga")
    answer = olga.post(f"/runs/{run}/messages/", {"message": "Next\u0007", "key": "k"})
    assert answer["Location"] == f"/runs/{run}/"
    thread = olga.get(f"/runs/{run}/summary/").json()["thread"]
    assert [entry["status"] for entry in thread] == ["queued", "pending"]
    assert thread[1]["text"] == "Next⟨U+0007⟩"


def test_an_invalid_follow_up_is_reported_on_the_page(run: str, sign_in: SignIn) -> None:
    answer = sign_in("olga").post(f"/runs/{run}/messages/", {"message": " "}, follow=True)
    assert "The message is empty" in answer.content.decode()


def test_the_offline_model_is_marked(run: str, sign_in: SignIn) -> None:
    assert "Offline scripted model." in sign_in("olga").get(f"/runs/{run}/").content.decode()


def test_the_summary_matches_the_rows(run: str, sign_in: SignIn) -> None:
    RunClock.objects.filter(run=run).update(
        turn=3, input_tokens=1000, output_tokens=200, cost_microusd=12_345
    )
    summary = sign_in("olga").get(f"/runs/{run}/summary/").json()
    assert summary["status"] == "queued"
    assert summary["turns"] == 3
    assert summary["tokens"] == 1200
    assert Decimal(summary["cost"]) == Decimal("0.0123")
    RunClock.objects.filter(run=run).update(cost_known=False)
    assert sign_in("olga").get(f"/runs/{run}/summary/").json()["cost"] is None


def test_the_summary_shows_exactly_the_input_that_a_decision_covers(
    run: str, sign_in: SignIn
) -> None:
    given = {"text": "a\u202eb\n<i>", "account": 9_007_199_254_740_993, "deep": {"x": [1.0]}}
    request = site_writer.ask(run, "send", given)
    (shown,) = sign_in("olga").get(f"/runs/{run}/summary/").json()["approvals"]
    assert shown["id"] == request
    assert shown["digest"] == site_writer.approval(request)["digest"]
    assert list(shown["blocked"]) == ["approve", "edit", "reject", "respond"]
    read = json.dumps(shown["review"], ensure_ascii=False)
    assert "9007199254740993" in read
    assert "⟨U+202E⟩" in read
    assert "\u202e" not in read
    [editor] = shown["editors"]
    assert json.loads(editor["text"]) == given
    assert "\\u202e" in editor["text"]


def test_the_summary_counts_requests_that_wait_for_others(run: str, sign_in: SignIn) -> None:
    site_writer.ask(run, "send", {"text": "secret"})
    vera = sign_in("vera")
    person = get_user_model().objects.get(username="vera")
    person.user_permissions.add(Permission.objects.get(codename="view_all_runs"))
    answer = vera.get(f"/runs/{run}/summary/")
    assert (answer.json()["approvals"], answer.json()["for_others"]) == ([], 1)
    assert sign_in("olga").get(f"/runs/{run}/summary/").json()["for_others"] == 0


@pytest.mark.slow
def test_the_summary_shows_requests_only_while_they_wait(run: str, sign_in: SignIn) -> None:
    site_writer.ask(run, "send", {})
    olga = sign_in("olga")
    assert len(olga.get(f"/runs/{run}/summary/").json()["approvals"]) == 1
    olga.post(f"/runs/{run}/cancel/")
    assert olga.get(f"/runs/{run}/summary/").json()["approvals"] == []


@pytest.mark.slow
def test_the_list_of_a_threads_runs_keeps_only_the_beginnings_of_their_messages(
    run: str, sign_in: SignIn
) -> None:
    """Fifty messages of a megabyte took 100 MB at every refresh of the page."""
    thread = Run.objects.get(pk=run).thread_id
    for _ in range(12):
        site_writer.make_run("olga", thread=thread)
    Message.objects.update(content=dump([{"type": "text", "text": "x" * 1_000_000}]))
    olga = sign_in("olga")
    tracemalloc.start()
    try:
        shown = olga.get(f"/runs/{run}/summary/").json()["thread"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(entry["text"]) for entry in shown] == [200] * 13
    assert peak < 13_000_000
