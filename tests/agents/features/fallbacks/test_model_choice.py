"""A person chooses the model of one message, among the models of the agent's definition."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.features.fallbacks.options import FallbackOptions
from agents.models import Run
from agents.services.errors import Conflict, InvalidRequest
from agents.services.runs.start import RunRequest, create_run
from agents.spec import AgentSpec
from tests.agents.features.fallbacks.test_fallbacks import (
    ANSWER,
    CHAIN,
    FIRST,
    OVERLOADED,
    SECOND,
    THIRD,
    asked,
    by_model,
    served,
)
from tests.support.runs import drive_to_end, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)

OTHERS = [
    "anthropic:claude-opus-9",
    SECOND,
    f"openai:{SECOND}",
    f"anthropic:{SECOND} ",
    "scripted:demo",
    "scripted:file:/etc/passwd",
    "\u202e",
    "x" * 100_000,
]


def ready() -> Any:
    user = make_user()
    make_agent(user, provider="anthropic", model=FIRST, fallbacks=CHAIN)
    return user


def test_a_run_starts_with_the_chosen_model_and_the_next_one_with_the_agents_own() -> None:
    user = ready()
    with served(by_model(opus=ANSWER, haiku=ANSWER)) as server:
        chosen = drive_to_end(start_run(user, key="s", model=f"anthropic:{SECOND}"))
        following = drive_to_end(start_run(user, key="s"))
    assert (chosen.status, following.status) == ("completed", "completed")
    assert asked(server) == [SECOND, FIRST]
    assert server.violations == []
    assert events(chosen, "run.started")[0]["model"] == SECOND
    assert not events(chosen, "model.fallback")


def test_the_fallbacks_after_the_chosen_model_continue() -> None:
    user = ready()
    with served(by_model(haiku=OVERLOADED, sonnet=ANSWER)) as server:
        run = drive_to_end(start_run(user, model=f"anthropic:{SECOND}"))
    assert run.status == "completed"
    assert asked(server) == [SECOND, SECOND, THIRD]


def test_the_run_keeps_everything_else_of_the_definition() -> None:
    run = start_run(ready(), model=f"anthropic:{SECOND}")
    own, used = (AgentSpec.model_validate(each) for each in (run.agent_version.spec, run.spec))
    assert used.option(FallbackOptions).fallbacks == own.option(FallbackOptions).fallbacks[1:]
    kept = own.model_copy(update={"model": SECOND, "fallbacks": CHAIN[1:]})
    assert used.model_dump(mode="json") == kept.model_dump(mode="json")


@pytest.mark.parametrize("name", ["", f"anthropic:{FIRST}"])
def test_the_agents_own_model_is_no_other_definition(name: str) -> None:
    assert start_run(ready(), model=name).subagent_spec is None


@pytest.mark.parametrize("name", OTHERS)
def test_another_model_is_refused_and_nothing_is_stored(name: str) -> None:
    user = ready()
    with pytest.raises(InvalidRequest, match="cannot use the model") as refused:
        start_run(user, model=name)
    assert refused.value.code == "model_not_allowed"
    assert f"anthropic:{SECOND}" in refused.value.message
    assert "\u202e" not in refused.value.message
    assert len(refused.value.message) < 1_000
    assert not Run.objects.exists()


def test_an_idempotency_key_means_one_model() -> None:
    user = ready()
    request = RunRequest(agent="tester", message="Hello", model=f"anthropic:{SECOND}")
    first = create_run(request, owner=user, idempotency_key="k")
    again = create_run(request, owner=user, idempotency_key="k")
    assert (again.run.pk, again.created) == (first.run.pk, False)
    with pytest.raises(Conflict):
        create_run(RunRequest(agent="tester", message="Hello"), owner=user, idempotency_key="k")


def test_a_message_that_waits_keeps_its_model() -> None:
    user = ready()
    start_run(user, key="s")
    waiting = start_run(user, key="s", queue=True, model=f"anthropic:{THIRD}")
    assert waiting.status == "pending"
    assert waiting.spec["model"] == THIRD


def test_the_page_offers_the_models_of_the_definition_and_refuses_others() -> None:
    user = ready()
    run = start_run(user, model=f"anthropic:{SECOND}")
    client = Client()
    client.force_login(user)
    text = client.get(f"/runs/{run.pk}/").text
    assert f'<option value="">anthropic:{FIRST}</option>' in text
    assert f'<option value="anthropic:{SECOND}" selected>' in text
    for name in OTHERS:
        form = {"message": "<b>More</b>", "key": "k", "model": name}
        answer = client.post(f"/runs/{run.pk}/messages/", form)
        assert answer.status_code == 400
        assert "cannot use the model" in answer.text
        assert "&lt;b&gt;More&lt;/b&gt;" in answer.text
    assert Run.objects.count() == 1
    client.post(f"/runs/{run.pk}/messages/", {"message": "M", "model": f"anthropic:{THIRD}"})
    assert Run.objects.latest("number").spec["model"] == THIRD


def test_the_rest_api_has_the_same_models() -> None:
    user = ready()
    client = Client()
    client.force_login(user)

    def post(model: object) -> Any:
        body = {"agent": "tester", "message": "Hello", "model": model}
        return client.post("/api/v1/runs", body, content_type="application/json")

    created = post(f"anthropic:{SECOND}")
    assert (created.status_code, created.json()["model"]) == (201, SECOND)
    assert post("").json()["model"] == FIRST
    refused = post("openai:gpt-6.2-sol")
    assert (refused.status_code, refused.json()["code"]) == (400, "model_not_allowed")
    for wrong in (7, None, ["x"], "x" * 301):
        assert post(wrong).status_code == 400
    assert Run.objects.count() == 2


def test_an_agent_with_one_model_offers_no_choice() -> None:
    user = make_user()
    make_agent(user)
    client = Client()
    client.force_login(user)
    assert 'name="model"' not in client.get(f"/runs/{start_run(user).pk}/").text
