"""The history of a chat is limited, and marks texts that were cut."""

from __future__ import annotations

from typing import Any

import pytest

from agents.events.append import append_events
from agents.events.catalogue.messages import TextCompleted
from agents.models import Run
from agents.selectors import chats
from agents.states import RunStatus
from tests.agents.api.rows import client_for, make_agent, make_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def said() -> list[Run]:
    """Create three messages, with answers of 1,000, 3,000 and 1,000 characters."""
    make_agent()
    user = make_user("ann")
    runs = []
    for size in (1_000, 3_000, 1_000):
        run = make_run(user, key="c1")
        answer = {"part_id": "1.0", "text": "x" * size}
        append_events(run.pk, [TextCompleted(**answer)])
        Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED)
        runs.append(run)
    return runs


def page(runs: list[Run], query: str = "") -> Any:
    return client_for(runs[0].owner).get(f"/api/v1/agents/writer/chat/c1?{query}").json()


def texts(found: Any) -> list[str]:
    answers = [message for message in found["messages"] if message["role"] == "assistant"]
    return [message["parts"][0]["text"] for message in answers]


def test_long_answers_come_in_shorter_pages(
    said: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "PAGE_CHARACTERS", 2_500)
    sizes, query = [], ""
    while True:
        found = page(said, query)
        sizes.append([len(text) for text in texts(found)])
        if found["next_before"] is None:
            break
        query = f"before={found['next_before']}"
    assert sizes == [[1_000], [3_000], [1_000]]


def test_an_answer_that_is_too_long_names_its_address(
    said: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "MAX_CHARACTERS", 2_500)
    first, second, third = texts(page(said))
    assert (len(first), len(third)) == (1_000, 1_000)
    assert "3,027 characters" in second
    assert f"/runs/{said[1].pk}/transcript" in second
