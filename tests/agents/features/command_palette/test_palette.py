"""The entries of the palette: only what the user may open."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.features.command_palette.entries import MOST_AGENTS
from agents.models import Agent, Thread
from tests.agents.api.rows import make_user
from tests.support import runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = runs.make_user()
    runs.make_agent(user)
    return user


def found(user: User, words: str = "") -> list[tuple[str, str]]:
    client = Client()
    client.force_login(user)
    body = client.get("/palette/", {"q": words}).json()
    return [(entry["group"], entry["label"]) for entry in body["entries"]]


def test_all_words_must_match_in_any_order_and_case(ada: User) -> None:
    assert ("Go to", "Usage") in found(ada, "usage GO")
    assert found(ada, "usage nowhere") == []


def test_conversations_are_found_by_their_messages_once_each(ada: User) -> None:
    run = runs.start_run(ada, "When does it rain?")
    runs.start_run(ada, "Does it snow?")
    assert found(ada, "it rain") == [("Conversations", run.thread.title)]


def test_agents_and_conversations_of_others_are_not_found(ada: User) -> None:
    runs.start_run(ada, "My secret")
    Agent.objects.update(everyone=False)
    mallory = make_user("mallory")
    assert {group for group, _ in found(mallory)} == {"Go to"}
    assert found(mallory, "secret") == []


def test_the_words_search_all_agents_before_the_list_is_cut(ada: User) -> None:
    for number in range(MOST_AGENTS):
        runs.make_agent(ada, slug=f"a{number}", name=f"A {number}")
    runs.make_agent(ada, slug="zebra", name="Zebra")

    assert ("Start a run", "Zebra") in found(ada, "zebra")
    assert [group for group, _ in found(ada)].count("Start a run") == MOST_AGENTS


def test_only_staff_find_the_admin(ada: User) -> None:
    assert ("Go to", "Admin") not in found(ada)
    User.objects.update(is_staff=True)
    assert ("Go to", "Admin") in found(User.objects.get())


def test_hidden_characters_of_titles_are_shown(ada: User) -> None:
    run = runs.start_run(ada, "Rain")
    Thread.objects.filter(pk=run.thread_id).update(title="a\u202eb")
    assert ("Conversations", "a⟨U+202E⟩b") in found(ada)


def test_visitors_are_sent_to_sign_in() -> None:
    assert Client().get("/palette/").status_code == 302
