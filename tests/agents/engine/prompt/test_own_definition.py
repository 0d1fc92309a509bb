"""A run with its own definition does not share the prompt of other runs of its thread."""

from __future__ import annotations

import pytest

from agents.models import Run
from tests.agents.features.fallbacks.test_fallbacks import ANSWER, FIRST, by_model, served
from tests.support.messages_api import MessagesServer
from tests.support.runs import drive_to_end, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)


def prompts(server: MessagesServer) -> list[str]:
    """Return the word that each request has in its system prompt."""
    texts = [str(request.json["system"]) for request in server.requests]
    return [next(word for word in ("DRAFT", "OTHER", "OWN") if word in text) for text in texts]


def test_only_the_run_with_the_definition_has_its_prompt() -> None:
    user = make_user()
    make_agent(user, provider="anthropic", model=FIRST, system_prompt="OWN")
    with served(by_model(opus=ANSWER)) as server:
        first = drive_to_end(start_run(user, key="s"))
        draft = {**first.spec, "system_prompt": "DRAFT"}
        for word in ("DRAFT", "DRAFT", "", "OTHER", ""):
            own = {**draft, "system_prompt": word} if word else None
            run = drive_to_end(start_run(user, key="s", draft=own))
            assert run.status == "completed"
    assert prompts(server) == ["OWN", "DRAFT", "DRAFT", "OWN", "OTHER", "OWN"]
    assert server.violations == []
    # The second run with the same definition continues the epoch of the first one.
    assert Run.objects.latest("number").thread.epochs.count() == 5
