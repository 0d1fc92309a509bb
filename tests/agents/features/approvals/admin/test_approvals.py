"""Decisions in the admin apply to the shown content."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import ApprovalRequest
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db


def decide(client, request, decision, **fields):
    data = {"decision": decision, "digest": request.digest, **fields}
    return client.post(page_url(request), data, follow=True)


def test_pending_requests_come_first():
    owner, root = rows.user(), rows.superuser()
    pending = rows.asked(rows.run(owner), "oldest_tool")
    decided = rows.asked(rows.run(owner), "newest_tool")
    client = client_of(root)
    decide(client, decided, "approve")

    text = text_of(client.get(list_url(ApprovalRequest)))

    assert text.index(page_url(pending)) < text.index(page_url(decided))


@pytest.mark.slow
def test_the_list_needs_no_more_queries_for_ten_requests_than_for_one():
    owner, client = rows.user(), client_of(rows.superuser())
    rows.asked(rows.run(owner))
    with CaptureQueriesContext(connection) as few:
        client.get(list_url(ApprovalRequest))
    for _ in range(9):
        rows.asked(rows.run(owner))

    with CaptureQueriesContext(connection) as many:
        text = text_of(client.get(list_url(ApprovalRequest)))

    assert text.count('class="action-select"') == 10
    assert len(many) <= len(few) + 1
    assert len(many) < 20


@pytest.mark.slow
def test_the_list_reads_only_the_beginning_of_a_long_input():
    owner, client = rows.user(), client_of(rows.superuser())
    rows.asked(rows.run(owner), "execute", {"command": "short one"})
    client.get(list_url(ApprovalRequest))  # the first request loads modules, which are not measured
    for _ in range(10):
        rows.asked(rows.run(owner), "execute", {"command": "long " * 400_000})

    tracemalloc.start()
    text = text_of(client.get(list_url(ApprovalRequest)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert "&quot;command&quot;: &quot;short one&quot;" in text
    assert text.count("&quot;long long ") == 10
    assert peak < 10_000_000  # 2 MB; with the inputs 60 MB


@pytest.mark.slow
def test_the_page_shows_all_that_is_decided():
    command = "\n".join(f"echo step {number}" for number in range(4_000))
    request = rows.asked(rows.run(rows.user()), "execute", {"command": command, "timeout": 60})

    text = text_of(client_of(rows.superuser()).get(page_url(request)))

    assert "execute" in text
    assert "echo step 3999\n" in text.replace("</pre>", "\n")
    assert request.digest in text
    assert page_url(request.run) in text
    assert "execute changes the workspace." in text


def test_approving_continues_the_run():
    root = rows.superuser()
    request = rows.asked(rows.run(rows.user()))

    response = decide(client_of(root), request, "approve")

    assert messages_of(response) == [f"Request {request.pk} (execute): decided: approve."]
    request.refresh_from_db()
    assert (request.status, request.decision, request.decided_by) == ("decided", "approve", root)
    assert request.run.status == RunStatus.QUEUED
    assert request.tool_call.status == ToolCallStatus.APPROVED


def test_rejecting_passes_the_reason_on():
    request = rows.asked(rows.run(rows.user()))

    decide(client_of(rows.superuser()), request, "reject", reason="Not on a Friday.")

    request.refresh_from_db()
    assert request.tool_call.status == ToolCallStatus.REJECTED
    assert "Not on a Friday." in request.tool_call.result


def test_changing_the_input_keeps_the_agents_input():
    request = rows.asked(rows.run(rows.user()), "execute", {"command": "rm -r /"})

    decide(client_of(rows.superuser()), request, "edit", input='{"command": "ls"}')

    call = request.tool_call
    call.refresh_from_db()
    assert json.loads(call.input) == {"command": "rm -r /"}
    assert call.effective_input == {"command": "ls"}


def test_answering_in_its_place_needs_an_answer():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.superuser())

    refused = decide(client, request, "respond", reason=" ")
    answered = decide(client, request, "respond", reason="It is blue.")

    assert "not decided" in messages_of(refused)[0]
    assert "decided: answer" in messages_of(answered)[0]
    request.tool_call.refresh_from_db()
    assert request.tool_call.result == '"It is blue."'


def test_an_input_given_without_the_decision_to_edit_changes_nothing():
    request = rows.asked(rows.run(rows.user()), "execute", {"command": "ls"})

    decide(client_of(rows.superuser()), request, "approve", input='{"command": "rm -r /"}')

    request.tool_call.refresh_from_db()
    assert request.tool_call.effective_input == {"command": "ls"}


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("{", "This is not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"command": NaN}', "NaN is not JSON"),
        ('{"command": 1e999}', "too large"),
        ('{"command": "a\\u0000b"}', "NUL"),
        ('{"command": "\\ud800"}', "half of a character"),
        ('{"command": ' + "9" * 5_000 + "}", "too long"),
        ("[" * 100_000, "nested too deeply"),
        ("", "This is not JSON"),
    ],
)
def test_an_invalid_input_is_refused_and_the_typed_text_kept(typed, complaint):
    request = rows.asked(rows.run(rows.user()))

    response = decide(client_of(rows.superuser()), request, "edit", input=typed)

    text = text_of(response)
    assert response.status_code == 200
    assert complaint in text
    assert 'class="vel-box" open' in text
    request.refresh_from_db()
    assert request.status == ApprovalStatus.PENDING


def test_a_form_that_showed_something_else_is_refused():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.superuser())

    response = decide(client, request, "approve", digest="0" * 64)

    assert "The request has changed. Reload it and decide again" in messages_of(response)[0]
    request.refresh_from_db()
    assert request.status == ApprovalStatus.PENDING


def test_a_form_without_a_digest_decides_nothing():
    request = rows.asked(rows.run(rows.user()))

    response = client_of(rows.superuser()).post(page_url(request), {"decision": "approve"})

    assert "digest: This field is required." in text_of(response)
    request.refresh_from_db()
    assert request.status == ApprovalStatus.PENDING


def test_the_second_of_two_decisions_is_refused():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.superuser())
    decide(client, request, "approve")

    response = decide(client, request, "reject")

    assert "The request is decided already." in messages_of(response)[0]
    request.refresh_from_db()
    assert request.decision == "approve"


def test_only_the_decisions_that_are_allowed_are_offered_and_taken():
    request = rows.asked(rows.run(rows.user()), decisions=["approve", "reject"])
    client = client_of(rows.superuser())

    text = text_of(client.get(page_url(request)))
    response = decide(client, request, "respond", reason="x")

    assert "Reject" in text
    assert "Answer instead" not in text
    assert "Approve with changes" not in text
    assert "not one of the decisions here" in messages_of(response)[0]


def test_a_decided_request_offers_nothing_more():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.superuser())
    decide(client, request, "edit", input='{"command": "true"}')

    text = text_of(client.get(page_url(request)))

    assert "Approve as shown" not in text
    assert "<strong>approve with changes</strong> by root" in text
    assert "What ran instead" in text


def test_the_input_to_edit_shows_invisible_characters():
    request = rows.asked(rows.run(rows.user()), "execute", {"command": "cat \u202etxt.sh"})

    text = text_of(client_of(rows.superuser()).get(page_url(request)))

    assert "\u202e" not in text
    assert "cat ⟨U+202E⟩txt.sh" in text
    assert "cat \\u202etxt.sh" in text


def test_several_are_shown_in_full_before_they_are_decided():
    owner, client = rows.user(), client_of(rows.superuser())
    first = rows.asked(rows.run(owner), "execute", {"command": "a" * 500 + "THE END"})
    second = rows.asked(rows.run(owner), "write_file", {"path": "b.md"})

    response = act(client, "approve_selected", first, second)

    text = text_of(response)
    assert "a" * 500 + "THE END" in text
    assert first.digest in text
    assert second.digest in text
    assert not ApprovalRequest.objects.exclude(status=ApprovalStatus.PENDING).exists()


def test_several_are_decided_one_by_one_with_a_result_for_each():
    owner, client = rows.user(), client_of(rows.superuser())
    first, second, third = (rows.asked(rows.run(owner)) for _ in range(3))
    decide(client, second, "reject")

    response = act(
        client,
        "approve_selected",
        first,
        second,
        third,
        confirmed="yes",
        **{
            f"digest_{first.pk}": first.digest,
            f"digest_{second.pk}": second.digest,
            f"digest_{third.pk}": "f" * 64,
        },
    )

    said = messages_of(response)
    assert f"Request {first.pk} (execute): decided: approve." in said
    assert f"Request {second.pk}: not decided. The request is decided already." in said
    assert any(
        line.startswith(f"Request {third.pk}: not decided.") and "decide again" in line
        for line in said
    )
    decisions = {row.pk: row.decision for row in ApprovalRequest.objects.all()}
    assert decisions == {first.pk: "approve", second.pk: "reject", third.pk: ""}


def test_several_rejected_have_the_reason():
    owner, client = rows.user(), client_of(rows.superuser())
    requests = [rows.asked(rows.run(owner)) for _ in range(2)]
    digests = {f"digest_{request.pk}": request.digest for request in requests}

    act(client, "reject_selected", *requests, confirmed="yes", reason="Not today.", **digests)

    assert set(ApprovalRequest.objects.values_list("decision", "reason")) == {
        ("reject", "Not today.")
    }


def test_selecting_all_decides_only_shown_requests():
    owner, client = rows.user(), client_of(rows.superuser())
    seen, unseen = (rows.asked(rows.run(owner)) for _ in range(2))

    act(
        client,
        "approve_selected",
        seen,
        select_across="1",
        confirmed="yes",
        **{f"digest_{seen.pk}": seen.digest},
    )

    unseen.refresh_from_db()
    assert unseen.status == ApprovalStatus.PENDING


def test_a_viewer_decides_nothing():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.staff("auditor", "view_approvalrequest", "view_all_runs"))

    text = text_of(client.get(page_url(request)))
    posted = client.post(page_url(request), {"decision": "approve", "digest": request.digest})
    act(
        client,
        "approve_selected",
        request,
        confirmed="yes",
        **{f"digest_{request.pk}": request.digest},
    )

    assert "rm -r build" in text
    assert "Approve as shown" not in text
    assert posted.status_code == 403
    request.refresh_from_db()
    assert request.status == ApprovalStatus.PENDING


def test_an_owner_among_the_staff_does_not_decide_in_the_admin_without_the_permission():
    clerk = rows.staff("clerk", "view_approvalrequest")
    request = rows.asked(rows.run(clerk))

    response = client_of(clerk).post(
        page_url(request), {"decision": "approve", "digest": request.digest}
    )

    assert response.status_code == 403


def test_the_permission_to_approve_is_enough():
    request = rows.asked(rows.run(rows.user()))
    client = client_of(rows.staff("approver", "approve_toolcall"))

    assert page_url(request) in text_of(client.get(list_url(ApprovalRequest)))
    decide(client, request, "approve")

    request.refresh_from_db()
    assert request.decision == "approve"
