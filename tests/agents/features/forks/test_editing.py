"""Edit a message and send it again in a new conversation."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.features.forks.editing import send_edited
from agents.models import Message, Run, Thread
from agents.services.errors import Conflict, NotAllowed
from agents.services.files.uploads import delete_upload, store_uploads
from agents.settings import DataSettings
from tests.agents.api.rows import answer_run, make_agent, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def first() -> Run:
    """Create a run that has ended, of an agent with a sandbox."""
    make_agent(sandbox=True)
    run = make_run(make_user("ann"), message="First")
    answer_run(run, "One.")
    return run


def followed(first: Run, message: str = "Second") -> Run:
    run = make_run(first.owner, thread=first.thread_id, message=message)
    answer_run(run, "Two.")
    return run


def said(thread: Thread) -> list[str]:
    rows = Message.objects.filter(run__thread=thread).order_by("run__number", "turn")
    return [row.text for row in rows]


def browser(name: str = "ann") -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_the_new_conversation_has_what_was_said_before_the_message(first: Run) -> None:
    second = followed(first)
    before = said(second.thread)
    made, _ = send_edited(second, "Better", by=first.owner)
    assert said(made.thread) == ["First", "One.", "Better"]
    assert made.thread.forked_from == first
    assert said(second.thread) == before


def test_the_first_message_of_a_conversation_starts_an_empty_one(first: Run) -> None:
    made, _ = send_edited(first, "Better", by=first.owner)
    assert said(made.thread) == ["Better"]
    assert made.thread_id != first.thread_id
    assert made.thread.agent == first.thread.agent


def test_attached_files_come_with_the_edited_message(first: Run) -> None:
    store_uploads(first.thread, [SimpleUploadedFile("../<b>.csv", b"1,2")], run=first)
    made, _ = send_edited(first, "Better", by=first.owner)
    [upload] = made.uploads.all()
    assert upload.original_name == first.uploads.get().original_name
    directory = DataSettings.now().workspaces / made.thread_id / "user_uploads"
    assert [path.read_bytes() for path in directory.iterdir()] == [b"1,2"]
    none, _ = send_edited(first, "Better", by=first.owner, files="none")
    assert not none.uploads.exists()

    second = followed(first)
    store_uploads(second.thread, [SimpleUploadedFile("late.csv", b"3")], run=second)
    later, _ = send_edited(second, "Better", by=first.owner)
    assert [upload.name for upload in later.uploads.all()] == ["late.csv"]


def test_an_attached_file_that_was_deleted_is_reported_and_nothing_starts(first: Run) -> None:
    [upload] = store_uploads(first.thread, [SimpleUploadedFile("a.csv", b"1")], run=first)
    (DataSettings.now().workspaces / first.thread_id / "user_uploads" / "a.csv").unlink()
    with pytest.raises(Conflict, match=r"'a\.csv' is not available"):
        send_edited(first, "Better", by=first.owner)
    assert Thread.objects.count() == 1
    delete_upload(first.thread, upload.pk)
    assert not send_edited(first, "Better", by=first.owner)[0].uploads.exists()


def test_only_the_owner_can_send_an_edited_message(first: Run) -> None:
    second = followed(first)
    bob = make_user("bob")
    with pytest.raises(NotAllowed):
        send_edited(second, "Mine", by=bob)
    with pytest.raises(NotAllowed):
        send_edited(first, "Mine", by=bob)
    for client_answer in (
        browser("bob").get(f"/runs/{first.pk}/edit/"),
        browser("bob").post(f"/runs/{first.pk}/edit/", {"edited": "Mine"}),
    ):
        assert client_answer.status_code == 404
    assert Thread.objects.count() == 1


def test_the_page_of_a_run_has_the_form_and_the_new_run_opens(first: Run) -> None:
    ann = browser()
    html = ann.get(f"/runs/{first.pk}/").content.decode()
    assert f'action="/runs/{first.pk}/edit/"' in html
    answer = ann.post(f"/runs/{first.pk}/edit/", {"edited": "Better\r\nnow", "files": "then"})
    made = Run.objects.exclude(pk=first.pk).get()
    assert answer["Location"] == f"/runs/{made.pk}/"
    assert said(made.thread) == ["Better\nnow"]


def test_a_refused_edit_keeps_the_text_and_offers_a_choice_of_files(first: Run) -> None:
    answer = browser().post(f"/runs/{first.pk}/edit/", {"edited": " ", "files": "now"})
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "The message is empty" in html
    assert '<option value="now" selected>' in html
    assert Run.objects.count() == 1
    form = browser().get(f"/runs/{first.pk}/edit/").content.decode()
    assert "First</textarea>" in form


def test_hidden_characters_are_visible_in_the_form_and_stay_in_the_message(first: Run) -> None:
    second = followed(first, "Second \u202e\\u{41}")
    form = browser().get(f"/runs/{second.pk}/edit/").content.decode()
    assert "\u202e" not in form
    typed = "Second \\u{202e}\\u{5c}u{41}"
    assert typed in form
    browser().post(f"/runs/{second.pk}/edit/", {"edited": typed, "files": "none"})
    made = Run.objects.get(thread__forked_from=first, is_copy=False)
    assert said(made.thread)[-1] == "Second \u202e\\u{41}"
