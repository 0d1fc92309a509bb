"""The admin's list of runs, a run's page, and the two actions on a run."""

from __future__ import annotations

import re
import time
import tracemalloc

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.events.append import dump
from agents.models import Agent, ApprovalRequest, Message, Run, RunClock, Thread, ToolCall
from agents.states import RunStatus, WaitReason
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db


def test_the_list_shows_the_values_that_operators_need():
    run = rows.put(
        rows.run(rows.user(), source="web"), RunStatus.WAITING, wait_reason=WaitReason.APPROVAL
    )
    RunClock.objects.filter(run=run).update(
        turn=7, input_tokens=1_000, output_tokens=234, cost_microusd=56_700
    )

    text = text_of(client_of(rows.superuser()).get(list_url(Run)))

    for shown in (
        run.pk,
        "coder v1",
        "ada",
        "waiting",
        "for approval",
        "web",
        "1,234",
        "$0.0567",
    ):
        assert shown in text
    assert re.search(r"\d min \d+ s", text)


def test_an_unknown_price_is_marked():
    run = rows.run(rows.user())
    RunClock.objects.filter(run=run).update(cost_known=False)

    assert "price not known" in text_of(client_of(rows.superuser()).get(list_url(Run)))


@pytest.mark.parametrize("wanted", ["id", "thread", "owner", "agent"])
def test_runs_are_found_by_id_thread_owner_and_agent(wanted):
    run = rows.run(rows.user("ada"))
    other = rows.run(rows.user("bob"), slug="analyst")
    words = {"id": run.pk, "thread": run.thread_id, "owner": "ada", "agent": "coder"}

    text = text_of(client_of(rows.superuser()).get(list_url(Run), {"q": words[wanted]}))

    assert page_url(run) in text
    assert page_url(other) not in text


@pytest.mark.parametrize(
    "query",
    [
        {"status__exact": "failed"},
        {"source": "web"},
        {"origin": "person"},
    ],
)
def test_filters_narrow_the_list(query):
    owner = rows.user()
    wanted = rows.put(rows.run(owner, source="web"), RunStatus.FAILED)
    other = rows.child(rows.run(owner), number=2)

    text = text_of(client_of(rows.superuser()).get(list_url(Run), query))

    assert page_url(wanted) in text
    assert page_url(other) not in text


def test_the_list_needs_no_more_queries_for_ten_runs_than_for_one():
    owner, client = rows.user(), client_of(rows.superuser())
    rows.run(owner)
    with CaptureQueriesContext(connection) as few:
        client.get(list_url(Run))
    for _ in range(9):
        rows.run(owner)

    with CaptureQueriesContext(connection) as many:
        text = text_of(client.get(list_url(Run)))

    assert text.count('class="action-select"') == 10
    assert len(many) <= len(few) + 1
    assert len(many) < 20


def test_the_page_shows_the_run_in_order():
    root = rows.superuser()
    run = rows.run(rows.user(), message="Clean up, please.")
    rows.reply(run, 1, "I will look first.", calls=2)
    rows.call(run, 1, "ls", {"path": "src"}, result="app.py")
    rows.call(
        run,
        1,
        "write_file",
        {"path": "b.md"},
        position=1,
        status="failed",
        result="no space",
        is_error=True,
        code="disk_full",
    )
    rows.reply(run, 2, "There is no space left.")

    text = text_of(client_of(root).get(page_url(run)))

    story = [
        "Clean up, please.",
        "I will look first.",
        "app.py",
        "write_file",
        "no space",
        "There is no space left.",
    ]
    places = [text.index(part) for part in story]
    assert places == sorted(places)
    assert "disk_full" in text
    assert "1.4 s" in text  # between two timestamps of the rows


@pytest.mark.slow
def test_the_page_needs_no_more_queries_for_many_turns_than_for_few():
    run, root = rows.run(rows.user()), rows.superuser()
    client = client_of(root)
    decided = {"status": "decided", "decision": "reject", "decided_by": root}
    rows.reply(run, 1, "one", calls=1)
    rows.asked(run, turn=1)
    ApprovalRequest.objects.update(**decided)
    with CaptureQueriesContext(connection) as few:
        client.get(page_url(run))
    for turn in range(2, 60):
        rows.reply(run, turn, "more", calls=2)
        rows.call(run, turn)
        rows.asked(run, turn=turn, position=1)
    ApprovalRequest.objects.update(**decided)
    rows.child(run, number=2)
    rows.child(run, number=3)

    with CaptureQueriesContext(connection) as many:
        client.get(page_url(run))

    assert len(many) <= len(few)


def test_a_run_with_many_turns_continues_on_the_next_page():
    run = rows.run(rows.user())
    for turn in range(1, 103):
        rows.reply(run, turn, f"This was turn {turn}.")
    client = client_of(rows.superuser())

    first = text_of(client.get(page_url(run)))
    second = text_of(client.get(page_url(run), {"turns": 2}))

    assert "This was turn 100." in first
    assert "This was turn 101." not in first
    assert "This was turn 101." in second
    assert "Turns 101–102 of 102" in second


def test_a_decided_call_shows_person_decision_and_reason():
    root = rows.superuser()
    run = rows.run(rows.user())
    request = rows.asked(run, "execute", {"command": "rm -r build"})
    client = client_of(root)
    client.post(
        page_url(request), {"decision": "reject", "digest": request.digest, "reason": "Keep it."}
    )

    text = text_of(client.get(page_url(run)))

    assert "<strong>reject</strong> by root" in text
    assert "Keep it." in text


def test_the_last_events_are_shown_and_earlier_ones_a_page_away():
    run = rows.run(rows.user())
    rows.events(run, 450)
    client = client_of(rows.superuser())

    last = text_of(client.get(page_url(run)))
    before = text_of(client.get(page_url(run), {"before": 251}))
    assert client.get(page_url(run), {"before": "9" * 5_000}).status_code == 200

    assert "251 to 450 of 450" in last
    assert "<td>250</td>" not in last
    assert "51 to 250 of 450" in before


@pytest.mark.parametrize(
    "query", [{"before": "x"}, {"before": "-1"}, {"before": "9" * 30}, {"turns": "x"}]
)
def test_invalid_parameters_are_not_an_error(query):
    run = rows.run(rows.user())
    rows.events(run, 3)

    assert client_of(rows.superuser()).get(page_url(run), query).status_code == 200


def test_a_long_result_is_folded_and_cut_with_a_full_download():
    run = rows.run(rows.user())
    rows.reply(run, 1, "Look.", calls=1)
    whole = rows.lines(3_000) + "THE VERY END"
    call = rows.call(run, 1, result=whole)
    client = client_of(rows.superuser())

    text = text_of(client.get(page_url(run)))
    link = reverse("admin:agents_run_text", args=[run.pk, "result", call.pk])
    download = client.get(link)

    assert "THE VERY END" not in text
    assert "<details" in text
    assert link in text
    assert download.json() == whole
    assert download["Content-Disposition"].startswith("attachment")
    assert download["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in download["Content-Security-Policy"]


def test_a_complete_text_is_available_only_through_its_run():
    root = rows.superuser()
    run, other = rows.run(rows.user("ada")), rows.run(rows.user("bob"))
    call = rows.call(run, 1)
    client = client_of(root)

    for run_id, part, pk in [
        (other.pk, "result", call.pk),
        (run.pk, "digest", call.pk),
        (run.pk, "result", 0),
        ("none", "result", call.pk),
    ]:
        assert (
            client.get(reverse("admin:agents_run_text", args=[run_id, part, pk])).status_code == 404
        )


def test_a_scripted_run_is_marked_and_another_is_not():
    owner, client = rows.user(), client_of(rows.superuser())
    rows.agent("offline", provider="scripted")
    rows.agent("online", provider="anthropic", model="claude-sonnet-5-5")

    assert "Scripted model." in text_of(client.get(page_url(rows.run(owner, slug="offline"))))
    assert "Scripted model." not in text_of(client.get(page_url(rows.run(owner, slug="online"))))


def test_children_and_their_parent_are_linked():
    parent = rows.run(rows.user())
    child = rows.child(parent, number=2)
    client = client_of(rows.superuser())

    assert page_url(child) in text_of(client.get(page_url(parent)))
    assert page_url(parent) in text_of(client.get(page_url(child)))


def test_cancelling_several_runs_reports_each():
    owner = rows.user()
    queued = rows.run(owner)
    driven = rows.put(rows.run(owner), RunStatus.RUNNING)
    RunClock.objects.filter(run=driven).update(lease_until=time.time() + 3_600)
    ended = rows.put(rows.run(owner), RunStatus.COMPLETED)

    client = client_of(rows.superuser())
    asked = text_of(act(client, "cancel_selected", queued, driven, ended))
    queued.refresh_from_db()
    assert ("Cancel 3 runs?" in asked, queued.status) == (True, RunStatus.QUEUED)
    confirmed = {"confirmed": "cancel_selected"}
    said = messages_of(act(client, "cancel_selected", queued, driven, ended, **confirmed))

    assert sorted(said) == sorted(
        [
            f"1 of 3: cancelled (Run {queued.pk}).",
            f"1 of 3: the worker was asked to stop it (Run {driven.pk}).",
            f"1 of 3: had ended already (completed) (Run {ended.pk}).",
        ]
    )
    queued.refresh_from_db()
    driven.refresh_from_db()
    assert queued.status == RunStatus.CANCELLED
    assert driven.status == RunStatus.RUNNING
    assert driven.clock.cancel_requested
    assert LogEntry.objects.filter(object_id=queued.pk, change_message="cancelled").exists()


def test_resuming_reports_each_and_one_refusal_does_not_keep_the_others():
    owner = rows.user()
    failed = rows.put(rows.run(owner), RunStatus.FAILED, error_code="overloaded")
    ended = rows.put(rows.run(owner), RunStatus.COMPLETED)

    said = messages_of(act(client_of(rows.superuser()), "resume_selected", ended, failed))

    assert f"Run {failed.pk}: handed to the workers." in said
    assert f"Run {ended.pk}: The run is completed: start a new run." in said
    failed.refresh_from_db()
    assert failed.status == RunStatus.QUEUED


def test_a_run_with_a_blocked_message_is_not_resumed():
    run = rows.put(rows.run(rows.user()), RunStatus.FAILED, message_refused=True)

    said = messages_of(act(client_of(rows.superuser()), "resume_selected", run))

    assert "The message of this run was blocked" in said[0]
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED


def test_a_ticked_run_that_has_left_the_filtered_list_is_reported_too():
    run = rows.put(rows.run(rows.user()), RunStatus.COMPLETED)
    data = {
        "action": "cancel_selected",
        "_selected_action": [run.pk],
        "index": 0,
        "confirmed": "cancel_selected",
    }

    response = client_of(rows.superuser()).post(
        f"{list_url(Run)}?status__exact=running", data, follow=True
    )

    assert messages_of(response) == [f"1 of 1: had ended already (completed) (Run {run.pk})."]


def test_the_buttons_of_the_page_cancel_and_resume():
    run = rows.run(rows.user())
    client = client_of(rows.superuser())

    cancelled = client.post(page_url(run), {"operation": "cancel"}, follow=True)
    resumed = client.post(page_url(run), {"operation": "resume"}, follow=True)
    unknown = client.post(page_url(run), {"operation": "delete"}, follow=True)

    assert messages_of(cancelled) == [f"Run {run.pk}: cancelled."]
    assert "The run is cancelled" in messages_of(resumed)[0]
    assert unknown.status_code == 200
    assert messages_of(unknown) == []


@pytest.mark.parametrize("page", ["add", "delete"])
def test_runs_cannot_be_added_or_deleted(page):
    run = rows.run(rows.user())
    args = [run.pk] if page == "delete" else []

    response = client_of(rows.superuser()).post(
        reverse(f"admin:agents_run_{page}", args=args), {"post": "yes"}
    )

    assert response.status_code == 403
    assert Run.objects.filter(pk=run.pk).exists()


def test_no_bulk_deletion_is_offered():
    run = rows.run(rows.user())

    act(client_of(rows.superuser()), "delete_selected", run, post="yes")

    assert Run.objects.filter(pk=run.pk).exists()


def test_deleting_a_user_does_not_take_runs_away():
    run = rows.run(rows.user())

    client_of(rows.superuser()).post(
        reverse("admin:auth_user_delete", args=[run.owner_id]), {"post": "yes"}
    )

    assert Run.objects.filter(pk=run.pk).exists()


def test_staff_without_permissions_see_nothing():
    run = rows.run(rows.user())
    rows.call(run, 1)
    client = client_of(rows.staff("clerk"))

    for model in (Agent, Run, Thread):
        assert client.get(list_url(model)).status_code == 403
    assert client.get(page_url(run)).status_code == 403
    index = text_of(client.get(reverse("admin:index")))
    assert list_url(Agent) not in index
    assert list_url(Run) not in index
    call = ToolCall.objects.get()
    assert (
        client.get(reverse("admin:agents_run_text", args=[run.pk, "result", call.pk])).status_code
        == 403
    )


def test_a_viewer_reads_and_changes_nothing():
    run = rows.run(rows.user())
    client = client_of(rows.staff("auditor", "view_run", "view_all_runs"))

    text = text_of(client.get(page_url(run)))
    posted = client.post(page_url(run), {"operation": "cancel"})
    act(client, "cancel_selected", run, confirmed="cancel_selected")

    assert "Do it." in text
    assert "Cancel run" not in text
    assert posted.status_code == 403
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_without_view_all_runs_a_user_sees_only_own_runs():
    clerk = rows.staff("clerk", "view_run", "change_run")
    own, foreign = rows.run(clerk), rows.run(rows.user())
    client = client_of(clerk)

    text = text_of(client.get(list_url(Run)))

    assert page_url(own) in text
    assert page_url(foreign) not in text
    assert foreign.pk not in text_of(client.get(page_url(foreign), follow=True)).replace(
        f"There is no run {foreign.pk}", ""
    )
    act(client, "cancel_selected", foreign, confirmed="cancel_selected")
    foreign.refresh_from_db()
    assert foreign.status == RunStatus.QUEUED


def test_a_run_that_does_not_exist_is_a_message():
    response = client_of(rows.superuser()).get(
        reverse("admin:agents_run_change", args=["none"]), follow=True
    )

    assert messages_of(response) == ["There is no run none that you may see."]


@pytest.mark.slow
def test_a_page_of_long_turns_keeps_only_their_beginnings():
    """A hundred replies of megabytes were in memory together."""
    run = rows.run(rows.user())
    for turn in range(1, 13):
        text = dump([{"type": "text", "text": f"turn {turn} " + "x" * 1_000_000}])
        Message.objects.create(run=run, turn=turn, role="assistant", content=text)
    admin = client_of(rows.superuser())
    tracemalloc.start()
    try:
        text = text_of(admin.get(page_url(run)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "turn 1 x" in text
    assert "turn 12 x" in text
    assert peak < 12_000_000
