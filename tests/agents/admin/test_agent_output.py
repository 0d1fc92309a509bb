"""The output schema of an agent, and variables in its prompt, in the admin."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from agents.events.append import dump
from agents.models import Agent, Message, MessageRole
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, page_url, text_of
from tests.agents.admin.test_agents import ADD, form

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"zeta": {"type": "string"}, "a": {"type": "number"}}}


@pytest.mark.slow
def test_a_schema_is_kept_in_its_order_and_shown_again() -> None:
    client = client_of(rows.superuser())
    client.post(reverse(ADD), form(output_schema=json.dumps(SCHEMA), output_repairs=1))
    agent = Agent.objects.get(slug="helper")
    spec = agent.versions.get().spec
    assert spec["output_repairs"] == 1
    assert list(json.loads(spec["output_schema"])["properties"]) == ["zeta", "a"]
    assert "&quot;zeta&quot;" in text_of(client.get(page_url(agent)))
    client.post(page_url(agent), form(output_schema="", output_repairs=1))
    agent.refresh_from_db()
    assert (agent.output_schema, agent.version) == (None, 2)
    assert agent.versions.get(number=2).spec["output_schema"] == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"output_schema": "{"}, "This is not JSON"),
        ({"output_schema": "[1]"}, "Give a JSON Schema as an object"),
        ({"output_schema": '{"type": "thing"}'}, "$.type must be one of array"),
        ({"output_schema": '{"pattern": "(?=a)"}'}, "no regular expression that RE2 takes"),
        ({"output_schema": '{"$ref": "http://x/"}'}, "$.$ref must be of the form"),
        ({"output_repairs": 6}, "less than or equal to 5"),
        ({"system_prompt": "Hi {{user.nmae}}"}, "there is no variable {{user.nmae}}"),
    ],
)
def test_errors_appear_at_their_field(changes: dict[str, object], told: str) -> None:
    response = client_of(rows.superuser()).post(reverse(ADD), form(**changes))
    assert response.status_code == 200
    (name,) = changes
    errors = response.context["adminform"].form.errors[name]
    assert told in " ".join(errors)
    assert not Agent.objects.exists()


def test_text_that_looks_like_a_variable_gets_a_warning() -> None:
    client = client_of(rows.superuser())
    prompt = "{{date}} {{ date }} {{foo}} {{{{user.name}}\u202e"
    response = client.post(reverse(ADD), form(system_prompt=prompt), follow=True)
    told = [text for text in messages_of(response) if "stay in the prompt" in text]
    assert told == ["These stay in the prompt as they are, as text: {{ date }}, {{foo}}."]


def test_a_note_to_the_model_is_below_its_answer() -> None:
    rows.agent("helper")
    root = rows.superuser()
    run = rows.run(root, slug="helper")
    said = (("assistant", "Three beans."), ("user", "It does not fit\u202e."))
    for position, (role, text) in enumerate(said):
        content = dump([{"type": "text", "text": text}])
        Message.objects.create(
            run=run, turn=1, position=position, role=MessageRole(role), content=content
        )
    text = text_of(client_of(root).get(page_url(run)))
    assert (
        text.index("Three beans.")
        < text.index("message from Vel to the model")
        < text.index("It does not fit")
    )
    assert "\u202e" not in text
