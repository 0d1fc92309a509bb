"""Outgoing mail: after approval, once, and exactly as shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.features.google_workspace.client import gmail_sending
from agents.features.google_workspace.middleware.gmail_sending import LetterInput
from agents.models import ApprovalRequest, ToolCall
from agents.review import as_text, call_review
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from tests.agents.engine.test_recovery import crash_once
from tests.agents.features.google_workspace.story import approve, begin, call, letter, play, results
from tests.support.google_workspace_server import AUTH, REFRESH, GoogleServer
from tests.support.runs import drive_to_end, start_run

pytestmark = pytest.mark.django_db(transaction=True)

LETTER: dict[str, Any] = {
    "to": ["bob@example.org"],
    "subject": "The report",
    "text": "It is ready, grüß dich.\nAda",
}
SEND = call("send_gmail_message", **LETTER)


@pytest.fixture(autouse=True)
def _no_hook_left() -> Iterator[None]:
    yield
    crash_points.crash_at(None)


def test_a_message_is_sent_once_after_an_approval(tmp_path: Path, google: GoogleServer) -> None:
    user, run = begin(tmp_path, SEND)
    run = drive_to_end(run, until=("waiting",))
    assert not google.mail.sent
    request = approve(user, run)
    with pytest.raises(Conflict):
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)
    run = drive_to_end(run)
    (sent,) = google.mail.sent
    assert (sent["To"], sent["Subject"]) == ("bob@example.org", "The report")
    assert sent.get_content().replace("\r\n", "\n") == ("It is ready, grüß dich.\nAda\n")  # type: ignore[attr-defined]
    assert "From" not in sent, "Google says who sends it"
    assert results(run)[0]["sent"] is True


def test_a_rejected_message_is_not_sent(tmp_path: Path, google: GoogleServer) -> None:
    user, run = begin(tmp_path, SEND)
    run = drive_to_end(run, until=("waiting",))
    request = ApprovalRequest.objects.get(run=run)
    decide_approval(request.pk, DecisionRequest("reject", digest=request.digest), by=user)
    drive_to_end(run)
    assert not google.mail.sent


def test_all_recipients_are_shown_clearly() -> None:
    shown = as_text(
        call_review(
            "send_gmail_message", {**LETTER, "cc": ["c@example.org"], "bcc": ["d@evil.example"]}
        )
    )
    for text in ("bob@example.org", "c@example.org", "d@evil.example", "The report", "grüß dich"):
        assert text in shown


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "Hi\r\nBcc: eve@evil.example"},
        {"subject": "Hi\u2028Bcc: eve@evil.example"},
        {"subject": "Hi\u202ereversed"},
        {"to": ["bob@example.org\r\nBcc: eve@evil.example"]},
        {"to": ["bob@example.org\n"]},
        {"to": ["bob@example.org, eve@evil.example"]},
        {"to": ["Bob <eve@evil.example>"]},
        {"to": ["bоb@example.org"]},  # a Cyrillic o
        {"to": []},
        {"cc": ["bob"]},
        {"bcc": [f"x{number}@example.org" for number in range(100)]},
        {"reply_to_message_id": "../../drafts"},
    ],
)
def test_a_message_that_would_change_is_refused_without_asking(wrong: dict[str, Any]) -> None:
    LetterInput.model_validate(LETTER)
    with pytest.raises(ValidationError):
        LetterInput.model_validate({**LETTER, **wrong})


def test_a_reply_joins_its_conversation(tmp_path: Path, google: GoogleServer) -> None:
    heads = {"Message_ID": "<m2@example.org>", "References": "<m1@example.org> <bad id> evil"}
    asked = letter()
    del asked["Message-ID"]
    for name, value in heads.items():
        asked[name.replace("_", "-")] = value
    key = google.mail.receive(asked, thread="18cthread")
    _, found = play(tmp_path, call("send_gmail_message", **LETTER, reply_to_message_id=key))
    (sent,) = google.mail.sent
    assert sent["In-Reply-To"] == "<m2@example.org>"
    assert sent["References"] == "<m1@example.org> <m2@example.org>"
    assert found[0]["thread_id"] == "18cthread"


@pytest.mark.parametrize("most", [3_000_000, 100])
def test_files_of_the_workspace_are_attached(
    tmp_path: Path, google: GoogleServer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A long message is uploaded, in another format."""
    monkeypatch.setattr(gmail_sending, "MOST_AS_JSON", most)
    write = call("write_file", path="/out/räp ort.csv", content="a,b\n")
    _, found = play(
        tmp_path, write, call("send_gmail_message", **LETTER, attachments=["/out/räp ort.csv"])
    )
    assert found[1]["sent"], found
    (sent,) = google.mail.sent
    (file,) = sent.iter_attachments()  # type: ignore[attr-defined]
    assert (file.get_filename(), file.get_content_type()) == ("räp ort.csv", "text/csv")
    assert file.get_content() == "a,b\n"
    uploads = [path for _, path in google.asked if path.startswith("/upload/")]
    assert bool(uploads) is (most == 100)


@pytest.mark.parametrize("path", ["/nowhere.txt", "/etc/../../etc/passwd", "/"])
def test_a_file_that_is_not_there_stops_it(tmp_path: Path, google: GoogleServer, path: str) -> None:
    _, found = play(tmp_path, call("send_gmail_message", **LETTER, attachments=[path]))
    assert "Nothing was sent" in found[0]
    assert not google.mail.sent


def test_a_draft_waits_too_and_is_not_sent(tmp_path: Path, google: GoogleServer) -> None:
    user, run = begin(tmp_path, call("create_gmail_draft", **LETTER))
    run = drive_to_end(run, until=("waiting",))
    assert not google.mail.drafts
    approve(user, run)
    assert results(drive_to_end(run)) == [{"draft_id": "r1"}]
    assert not google.mail.sent


def test_a_read_only_credential_cannot_send(tmp_path: Path, google: GoogleServer) -> None:
    google.grants[REFRESH] = ("ada@example.com", f"{AUTH}gmail.readonly")
    asked = len(google.asked)
    _, found = play(tmp_path, SEND, call("list_gmail_messages"))
    assert f"{AUTH}gmail.send" in found[0]
    assert found[1] == {"messages": []}
    assert not any("send" in path for _, path in google.asked[asked:])


# Faults with an unknown outcome


def again(fault: Any, tmp_path: Path, google: GoogleServer) -> list[Any]:
    """Send a message with a fault, twice, with approval both times."""
    google.faults[("POST", "/messages/send")] = [fault]
    return play(tmp_path, SEND, SEND)[1]


@pytest.mark.parametrize(("fault", "rewrites"), [("cut", True), (("after", 503), False)])
def test_a_message_that_went_out_unseen_is_found_and_not_sent_again(
    tmp_path: Path, google: GoogleServer, fault: Any, rewrites: bool
) -> None:
    google.mail.rewrites_message_ids = rewrites
    found = again(fault, tmp_path, google)
    assert "not known" in found[0]
    assert found[1]["sent"] is False
    assert found[1]["note"] == "It was sent by an earlier call already."
    assert len(google.mail.sent) == 1


def test_an_unsent_message_is_sent_by_the_second_call(tmp_path: Path, google: GoogleServer) -> None:
    found = again(503, tmp_path, google)
    assert "not known" in found[0]
    assert found[1]["sent"] is True
    assert len(google.mail.sent) == 1


def test_a_refusal_is_not_an_unknown_outcome(tmp_path: Path, google: GoogleServer) -> None:
    found = again(400, tmp_path, google)
    assert "Google refused (400)" in found[0]
    assert found[1]["sent"] is True
    assert not any("labelIds=SENT" in path for _, path in google.asked)


def test_without_read_access_a_message_is_not_sent_again(
    tmp_path: Path, google: GoogleServer
) -> None:
    google.grants[REFRESH] = ("ada@example.com", f"{AUTH}gmail.send")
    found = again("cut", tmp_path, google)
    assert "the sent messages cannot be read" in found[1]
    assert f"{AUTH}gmail.readonly" in found[1]
    assert len(google.mail.sent) == 1


@pytest.mark.parametrize(
    ("point", "sent_before"), [(CrashPoint.STARTED_WRITTEN, 0), (CrashPoint.TOOL_DONE, 1)]
)
def test_a_worker_that_dies_between_journal_and_mail_sends_never_twice(
    tmp_path: Path, google: GoogleServer, point: CrashPoint, sent_before: int
) -> None:
    user, run = begin(tmp_path, SEND, SEND)
    run = drive_to_end(run, until=("waiting",))
    approve(user, run)
    crash_once(run, point)
    assert len(google.mail.sent) == sent_before
    run = drive_to_end(run, until=("waiting",))  # the repeated call needs an approval, too
    assert ToolCall.objects.filter(run=run, status="interrupted").count() == 1
    approve(user, run)
    run = drive_to_end(run)
    assert run.status == "completed"
    assert len(google.mail.sent) == 1
    assert results(run)[1]["sent"] is (not sent_before)


def test_the_same_message_is_not_sent_twice_in_a_run_but_in_the_next(
    tmp_path: Path, google: GoogleServer
) -> None:
    run, found = play(tmp_path, SEND, SEND)
    assert "this run has already sent an identical message" in found[1]
    assert len(google.mail.sent) == 1
    user = run.owner
    following = drive_to_end(start_run(user), until=("waiting",))
    approve(user, following)
    drive_to_end(following, until=("waiting",))
    assert len(google.mail.sent) == 2, "who asks again means it"


def test_a_draft_and_a_letter_of_the_same_words_are_two_things(
    tmp_path: Path, google: GoogleServer
) -> None:
    _, found = play(tmp_path, call("create_gmail_draft", **LETTER), SEND)
    assert found[1]["sent"] is True
