"""Excerpts of found messages: the words marked, hostile texts escaped, at a limited cost."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Run
from agents.selectors import excerpts
from agents.selectors.excerpts import excerpts_of
from tests.agents.features.conversation_export.rows import reply
from tests.support import runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = runs.make_user()
    runs.make_agent(user)
    return user


def excerpt(run: Run, words: str) -> str:
    """Return the excerpt with brackets around what was found."""
    parts = excerpts_of([run.pk], words).get(run.pk, [])
    return "".join(f"[{part.text}]" if part.is_found else part.text for part in parts)


def page(user: User, path: str, words: str) -> str:
    client = Client()
    client.force_login(user)
    return client.get(path, {"q": words}).content.decode()


@pytest.mark.both_databases
def test_the_words_are_marked_in_the_first_message_that_has_them(ada: User) -> None:
    run = runs.start_run(ada, 'When does\nit  "rain"? Rain\\')
    reply(run, 1, "It rains in June.")
    other = runs.start_run(ada, "Snow")
    assert excerpt(run, "RAIN") == 'When does it "[rain]"? [Rain]\\'
    assert excerpt(run, '"rain"?') == 'When does it ["rain"?] Rain\\'
    assert excerpt(run, "in june") == "It rains [in June]."
    assert set(excerpts_of([run.pk, other.pk], "rain")) == {run.pk}


def test_an_excerpt_is_short(ada: User) -> None:
    run = runs.start_run(ada, "a" * 500 + "rain" + "b" * 500)
    assert excerpt(run, "rain") == f"…{'a' * 60}[rain]{'b' * 136}…"
    assert excerpt(run, "b" * 400) == f"…{'a' * 56}rain[{'b' * 140}]…"


@pytest.mark.both_databases
def test_words_of_the_json_around_a_message_have_no_excerpt(ada: User) -> None:
    run = runs.start_run(ada, "Hello")
    thoughts = {"type": "thinking", "thinking": "the secret", "signature": "secret"}
    reply(run, 1, thoughts, "Fine.")
    reply(run, 1, "a secret note", position=1)
    assert excerpt(run, "type") == ""
    assert excerpt(run, "secret") == ""
    reply(run, 2, "No secret.")
    assert excerpt(run, "secret") == "No [secret]."


@pytest.mark.both_databases
def test_the_cost_does_not_grow_with_runs_and_messages(
    ada: User, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [runs.start_run(ada, f"rain {number}") for number in range(3)]
    for run in made:
        for turn in range(1, 9):
            reply(run, turn, f"rain {turn}")
    loaded: list[str] = []
    read = excerpts._excerpt_of
    monkeypatch.setattr(
        excerpts, "_excerpt_of", lambda *given: loaded.append(given[0]) or read(*given)
    )
    with django_assert_num_queries(2):
        assert len(excerpts_of([run.pk for run in made], "rain")) == 3
    assert len(loaded) == 3
    monkeypatch.setattr(excerpts, "READ_CHARACTERS", 10)
    assert len(excerpts_of([run.pk for run in made], "rain")) == 1


@pytest.mark.parametrize("path", ["/conversations/", "/runs/"])
def test_the_pages_mark_the_words_and_show_hostile_texts_as_text(ada: User, path: str) -> None:
    runs.start_run(ada, "Title\n\n" + "x" * 300 + "<script>alert(1)</script> rain</mark>\u202e<b>")
    text = page(ada, path, "script>alert")
    assert (
        "&lt;<mark>script&gt;alert</mark>(1)&lt;/script&gt; rain&lt;/mark&gt;⟨U+202E⟩&lt;b&gt;"
        in text
    )
    assert "<script>alert" not in text
    assert "<mark>" not in page(ada, path, "")


def test_messages_of_others_have_no_excerpt(ada: User) -> None:
    runs.start_run(ada, "my secret plan")
    mallory = runs.make_user("mallory")
    assert "plan" not in page(mallory, "/conversations/", "secret")
    assert "plan" not in page(mallory, "/runs/", "secret")
