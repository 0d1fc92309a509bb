"""Decision forms: bound to the shown content, for one or several requests, and only these."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from agents.models import ApprovalGrant
from tests.agents.web.asking import JSON, ask, decide, stored
from tests.agents.web.conftest import SignIn
from tests.support import site_writer


@pytest.mark.parametrize("path", ["", "decide/"])
def test_anothers_request_looks_like_a_missing_one(run: str, sign_in: SignIn, path: str) -> None:
    request, peter = ask(run, secret="hidden"), sign_in("peter")
    answers = []
    for key in (request.pk, "0" * 26):
        url = f"/approvals/{key}/{path}"
        data = {"decision": "approve", "digest": request.digest}
        answer = peter.post(url, data, headers=JSON) if path else peter.get(url)
        text = answer.content.decode().replace(key, "")
        answers.append((answer.status_code, re.sub('value="[^"]*"', "", text)))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert stored(request).status == "pending"


def test_nothing_is_decided_with_get_or_without_the_token(run: str, sign_in: SignIn) -> None:
    request, olga = ask(run), sign_in("olga")
    data = {"decision": "approve", "digest": request.digest}
    assert olga.get(f"/approvals/{request.pk}/decide/", data).status_code == 405
    assert olga.get("/approvals/decide/", data).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = olga.cookies
    assert strict.post(f"/approvals/{request.pk}/decide/", data).status_code == 403
    several = {"decision": "approve", "selected": f"{request.pk}:{request.digest}"}
    assert strict.post("/approvals/decide/", several).status_code == 403
    assert stored(request).status == "pending"


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_an_answer_is_bound_to_the_digest_that_was_shown(
    run: str, sign_in: SignIn, digest: str
) -> None:
    request = ask(run)
    other = ask(run, text="other")
    for swapped in (digest, other.digest):
        answer = decide(sign_in("olga"), request, "approve", digest=swapped)
        assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert stored(request).status == "pending"


def test_approving_rejecting_and_answering(run: str, sign_in: SignIn) -> None:
    olga = sign_in("olga")
    first, second, third = ask(run), ask(run), ask(run)
    assert decide(olga, first, "approve").json() == {
        "message": "Approved: send.",
        "is_pending": False,
    }
    decide(olga, second, "reject", reason="No\r\nnever")
    decide(olga, third, "respond", reason="It is 7")
    found = [(stored(each).decision, each.reason) for each in (first, second, third)]
    assert found == [("approve", ""), ("reject", "No\nnever"), ("respond", "It is 7")]
    assert "is decided already" in decide(olga, first, "reject").json()["message"]


def test_an_edit_is_exactly_the_typed_text(run: str, sign_in: SignIn) -> None:
    request = ask(run, "execute", command="a\u202eb", account=9_007_199_254_740_993)
    [card] = sign_in("olga").get("/approvals/live/").json()["cards"]
    [editor] = card["editors"]
    assert "\\u202e" in editor["text"]
    assert "\u202e" not in editor["text"]
    decide(sign_in("olga"), request, "edit", input=editor["text"].replace("u202eb", "u202ec"))
    assert stored(request).edited_input == {
        "command": "a\u202ec",
        "account": 9_007_199_254_740_993,
    }


def test_an_edit_with_a_field_that_the_tool_does_not_know_decides_nothing(
    run: str, sign_in: SignIn
) -> None:
    request = ask(run, "execute", command="ls")
    answer = decide(sign_in("olga"), request, "edit", input='{"command": "ls", "comand": "pwd"}')
    assert answer.status_code == 400
    assert "no field 'comand'" in answer.json()["message"]
    assert stored(request).status == "pending"


@pytest.mark.parametrize("typed", ["", "{", "[]", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000])
def test_an_invalid_edit_decides_nothing(run: str, sign_in: SignIn, typed: str) -> None:
    request = ask(run)
    assert decide(sign_in("olga"), request, "edit", input=typed).status_code == 400
    assert stored(request).status == "pending"


CONTENT = "one\r\ntwo\u202e \\u{202e}\n"


def test_the_content_of_a_file_is_edited_as_text(run: str, sign_in: SignIn) -> None:
    request = ask(run, "write_file", path="a.txt", content=CONTENT)
    [card] = sign_in("olga").get("/approvals/live/").json()["cards"]
    typed = card["editors"][0]["text"]
    assert typed == "one\\u{d}\ntwo\\u{202e} \\u{5c}u{202e}\n"
    as_sent_by_a_browser = typed.replace("one", "1").replace("\n", "\r\n")
    decide(sign_in("olga"), request, "edit", content=as_sent_by_a_browser)
    edited = stored(request).edited_input
    assert edited == {"path": "a.txt", "content": CONTENT.replace("one", "1")}


def test_a_refused_form_returns_with_the_typed_text(run: str, sign_in: SignIn) -> None:
    request = ask(run)
    data = {"decision": "edit", "digest": request.digest, "input": '{"mine": '}
    answer = sign_in("olga").post(f"/approvals/{request.pk}/decide/", data)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "This is not JSON" in page
    assert "{&quot;mine&quot;: </textarea>" in page


def test_a_form_without_scripts_goes_back_to_its_page_of_the_queue(
    run: str, sign_in: SignIn
) -> None:
    request = ask(run)
    data = {"decision": "approve", "digest": request.digest, "back": "tool=send&after=0&x=1"}
    answer = sign_in("olga").post(f"/approvals/{request.pk}/decide/", data)
    assert answer["Location"] == "/approvals/?tool=send&after=0"
    data = {"decision": "approve", "digest": "", "back": "//evil.example/"}
    several = sign_in("olga").post("/approvals/decide/", data)
    assert several["Location"] == "/approvals/?"


def test_several_requests_in_one_form_are_decided_separately(run: str, sign_in: SignIn) -> None:
    own, swapped, gone = ask(run), ask(run), ask(run)
    site_writer.make_user("peter")
    foreign = ask(site_writer.make_run("peter"))
    site_writer.supersede(gone.pk)
    selected = [
        f"{own.pk}:{own.digest}",
        f"{swapped.pk}:{'0' * 64}",
        f"{gone.pk}:{gone.digest}",
        f"{foreign.pk}:{foreign.digest}",
        "a\x00b:c",
        own.pk,
    ]
    data = {"decision": "reject", "reason": "No", "selected": selected}
    results = sign_in("olga").post("/approvals/decide/", data, headers=JSON).json()["results"]
    assert [result["is_done"] for result in results] == [True, False, False, False, False, False]
    assert "that you may decide" in results[3]["message"]
    assert results[3]["what"] == foreign.pk  # without its tool
    assert [stored(each).status for each in (own, swapped, gone, foreign)] == [
        "decided",
        "pending",
        "superseded",
        "pending",
    ]


def test_several_decisions_without_scripts_show_their_results(run: str, sign_in: SignIn) -> None:
    first, second = ask(run, "send"), ask(run, "mail")
    selected = [f"{first.pk}:{first.digest}", f"{second.pk}:x"]
    data = {"decision": "approve", "selected": selected}
    page = sign_in("olga").post("/approvals/decide/", data, follow=True).content.decode()
    assert "Approved: 1." in page
    assert "mail: The request has changed" in page


@pytest.mark.parametrize(
    "data", [{"decision": "edit", "selected": "a:b"}, {"decision": "approve"}, {}]
)
def test_invalid_selections_decide_nothing(run: str, sign_in: SignIn, data: dict[str, str]) -> None:
    answer = sign_in("olga").post("/approvals/decide/", data, headers=JSON)
    assert (answer.status_code, answer.json()["results"]) == (400, [])


def test_invalid_terms_grant_and_approve_nothing(run: str, sign_in: SignIn) -> None:
    request = ask(run)
    for terms in (
        {"match": "all"},
        {"match": "tool", "days": "-1"},
        {"match": "tool", "days": "7"},
    ):
        answer = decide(sign_in("olga"), request, "always", **terms)
        assert answer.status_code == 400, terms
    assert stored(request).status == "pending"


def test_always_approves_and_grants_as_the_service_allows(run: str, sign_in: SignIn) -> None:
    request = ask(run, "execute", command="ls")
    terms = {"match": "command", "pattern_command": "ls", "days": "3", "max_uses": "5"}
    unfit = decide(sign_in("olga"), request, "always", **{**terms, "pattern_command": "cat"})
    assert (unfit.status_code, "does not fit" in unfit.json()["message"]) == (400, True)
    too_wide = decide(sign_in("olga"), request, "always", **terms, whose="everybody")
    assert too_wide.status_code == 403
    assert (stored(request).status, ApprovalGrant.objects.count()) == ("pending", 0)
    assert decide(sign_in("olga"), request, "always", **terms, whose="thread").status_code == 200
    grant = ApprovalGrant.objects.get()
    assert (grant.condition, grant.max_uses) == ({"command": "ls"}, 5)
    assert (grant.thread_id, stored(request).decision) == (request.run.thread_id, "approve")
