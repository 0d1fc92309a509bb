"""The list of conversations: for its owner, in the browser and by REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.features.conversations.conversations import conversations_of, mark
from agents.models import Run, Thread
from tests.agents.api.rows import client_for, make_user
from tests.support import runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = runs.make_user()
    runs.make_agent(user)
    return user


def browser(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def titles(user: User, words: str = "", *, archived: bool = False) -> list[str]:
    found = conversations_of(user, words, archived=archived)
    return [conversation.thread.title for conversation in (*found.pinned, *found.others)]


def change(user: User, thread: Thread, action: str, **fields: str) -> Any:
    url = f"/conversations/{thread.pk}/"
    return browser(user).post(url, {"action": action, **fields})


def test_each_conversation_is_listed_once_with_its_latest_run(ada: User) -> None:
    first = runs.start_run(ada, "Rain")
    Run.objects.filter(pk=first.pk).update(status="completed")
    runs.start_run(ada, "Snow")
    again = runs.start_run(ada, "Rain again", thread=first.thread_id)
    found = conversations_of(ada)
    assert found.others[0].run.pk == again.pk
    assert titles(ada) == ["Rain", "Snow"]
    assert not found.is_cut


def test_a_pinned_conversation_is_first_and_an_archived_one_is_in_its_own_list(
    ada: User,
) -> None:
    rain, snow, sun = (runs.start_run(ada, text).thread for text in ("Rain", "Snow", "Sun"))
    mark(rain, pinned=True)
    mark(snow, archived=True)
    assert titles(ada) == ["Rain", "Sun"]
    assert titles(ada, archived=True) == ["Snow"]
    mark(snow, archived=False)
    assert titles(ada) == ["Rain", "Sun", "Snow"]
    assert sun.pk


def test_archiving_removes_the_pin_and_pinning_restores(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    mark(thread, pinned=True)
    row = mark(thread, archived=True)
    assert (row.pinned_at, bool(row.archived_at)) == (None, True)
    row = mark(thread, pinned=True)
    assert (bool(row.pinned_at), row.archived_at) == (True, None)


def test_a_search_finds_words_of_messages_and_titles(ada: User) -> None:
    runs.start_run(ada, "When does it rain?")
    snow = runs.start_run(ada, "Snow").thread
    assert titles(ada, "does it RAIN") == ["When does it rain?"]
    assert titles(ada, "snow") == [snow.title]
    assert titles(ada, "nowhere") == []


def test_another_user_sees_and_changes_nothing(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    mallory = make_user("mallory")
    assert titles(mallory) == []
    for action in ("pin", "archive", "rename"):
        assert change(mallory, thread, action, title="Mine").status_code == 404
    rest = client_for(mallory)
    url = f"/api/v1/threads/{thread.pk}/mark"
    assert rest.get(url).status_code == 404
    assert rest.patch(url, {"pinned": True}, format="json").status_code == 404
    assert titles(ada) == ["Rain"]
    assert not hasattr(Thread.objects.get(pk=thread.pk), "mark")


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_mark_is_true_or_false(ada: User, value: object) -> None:
    thread = runs.start_run(ada, "Rain").thread
    url = f"/api/v1/threads/{thread.pk}/mark"
    answer = client_for(ada).patch(url, {"archived": value}, format="json")
    assert answer.status_code == 400
    assert titles(ada) == ["Rain"]


def test_the_page_pins_renames_and_archives(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    change(ada, thread, "rename", title="  Weather\n of June ")
    change(ada, thread, "pin")
    text = browser(ada).get("/conversations/").content.decode()
    assert "Weather of June" in text
    assert '<h2 id="pinned">' in text
    change(ada, thread, "archive")
    assert "Weather of June" not in browser(ada).get("/conversations/").content.decode()
    assert "Weather of June" in browser(ada).get("/conversations/?archived=1").content.decode()


def test_an_empty_title_is_refused_with_a_message(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    client = browser(ada)
    client.post(f"/conversations/{thread.pk}/", {"action": "rename", "title": " "})
    assert "A title has 1 to 200 characters." in client.get("/conversations/").content.decode()
    assert titles(ada) == ["Rain"]


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_form_does_not_lead_to_another_site(ada: User, back: str) -> None:
    thread = runs.start_run(ada, "Rain").thread
    assert change(ada, thread, "pin", back=back)["Location"] == "/conversations/"


def test_a_hostile_title_is_shown_as_text(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    Thread.objects.filter(pk=thread.pk).update(title='"><script>alert(1)</script>\u202e')
    text = browser(ada).get("/conversations/").content.decode()
    assert "<script>alert" not in text
    assert "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in text


def test_the_page_of_a_run_lists_the_conversations(ada: User) -> None:
    rain, snow = runs.start_run(ada, "Rain"), runs.start_run(ada, "Snow")
    text = browser(ada).get(f"/runs/{rain.pk}/").content.decode()
    assert f'<a href="/runs/{rain.pk}/" aria-current="page">' in text
    assert f'<a href="/runs/{snow.pk}/">' in text


def test_the_list_beside_a_run_gets_titles_and_statuses_of_the_latest_runs(ada: User) -> None:
    run = runs.start_run(ada, "Rain")
    Run.objects.filter(pk=run.pk).update(status="failed")
    body = browser(ada).get("/conversations/statuses/").json()
    assert body == {run.thread_id: {"status": "failed", "text": "failed", "title": "Rain"}}


def test_rest_marks_a_thread_and_keeps_missing_fields(ada: User) -> None:
    thread = runs.start_run(ada, "Rain").thread
    rest, url = client_for(ada), f"/api/v1/threads/{thread.pk}/mark"
    assert rest.get(url).json() == {"pinned": False, "archived": False}
    assert rest.patch(url, {"pinned": True}, format="json").json() == {
        "pinned": True,
        "archived": False,
    }
    assert rest.patch(url, {}, format="json").json() == {"pinned": True, "archived": False}
    assert rest.patch(url, {"pinned": 3}, format="json").status_code == 400


def test_the_list_costs_the_same_for_many_conversations(
    ada: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        runs.start_run(ada, f"Rain {number}")
    with django_assert_max_num_queries(6):
        assert len(titles(ada)) == 12


def test_pinned_conversations_have_their_latest_run_at_the_same_cost(
    ada: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(8):
        mark(runs.start_run(ada, f"Rain {number}").thread, pinned=True)
    first = Thread.objects.earliest("created_at")
    Run.objects.filter(thread=first).update(status="completed")
    again = runs.start_run(ada, "Again", thread=first.pk)
    with django_assert_max_num_queries(8):
        found = conversations_of(ada)
    assert found.pinned[-1].run.pk == again.pk
    assert len(found.pinned) == 8
