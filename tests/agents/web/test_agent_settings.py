"""The page Settings of an agent: the owner changes the definition as one import."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Agent, AuditEntry
from agents.services.agent_definitions.files import export_agent
from tests.agents.api.rows import make_agent
from tests.agents.web.conftest import SignIn

URL = "/agents/writer/settings/"


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    """olga, who owns the agent and has no permission."""
    return sign_in("olga")


@pytest.fixture
def agent(olga: Client) -> Agent:
    owner = User.objects.get(username="olga")
    return make_agent(owner=owner, everyone=False, system_prompt="You write.\u202e", network="full")


def seen(client: Client) -> Any:
    return client.get(URL).context


def fields(client: Client, **changed: str) -> dict[str, str]:
    context = seen(client)
    return {"action": "save", "base": context["base"], **context["fields"], **changed}


def file_of(agent: Agent) -> str:
    return export_agent(Agent.objects.get(pk=agent.pk), by=agent.owner)


def test_the_owner_changes_the_fields_as_one_version(olga: Client, agent: Agent) -> None:
    prompt = seen(olga)["fields"]["system_prompt"]
    assert prompt == "You write.\\u{202e}"
    changed = fields(olga, name="Poet", system_prompt=f"{prompt}\r\nYou rhyme.")

    assert olga.post(URL, changed).status_code == 302

    stored = Agent.objects.get(pk=agent.pk)
    assert (stored.name, stored.system_prompt) == ("Poet", "You write.\u202e\nYou rhyme.")
    assert (stored.version, stored.network, stored.everyone) == (2, "full", False)
    assert (stored.provider, stored.model) == ("scripted", "demo")
    entry = AuditEntry.objects.get(action="agent.changed")
    assert (entry.actor, entry.door) == ("olga", "web")
    assert "version 2" in olga.get(URL).content.decode().lower()


def test_unchanged_settings_make_no_version(olga: Client, agent: Agent) -> None:
    assert "Nothing has changed." in olga.post(URL, fields(olga), follow=True).content.decode()
    assert Agent.objects.get(pk=agent.pk).version == 1


def test_the_whole_file_is_shown_as_a_difference_before_it_is_stored(
    olga: Client, agent: Agent
) -> None:
    text = file_of(agent) + "max_turns: 4\n"
    preview = olga.post(URL, {"action": "preview", "file": text.replace("\n", "\r\n")})
    assert "+max_turns: 4" in preview.content.decode()
    assert Agent.objects.get(pk=agent.pk).max_turns != 4
    base = preview.context["plan"].base

    stored = olga.post(URL, {"action": "store", "file": preview.context["file"], "base": base})

    assert stored.status_code == 302
    assert Agent.objects.get(pk=agent.pk).max_turns == 4


def test_a_change_in_between_is_not_overwritten(olga: Client, agent: Agent) -> None:
    late = fields(olga, name="Late")
    olga.post(URL, fields(olga, name="First"))
    for _ in range(2):
        answer = olga.post(URL, late)
        page = answer.content.decode()
        assert answer.status_code == 409
        assert "has changed" in page
        assert "Late" in page
        late = {**late, "base": answer.context["base"]}
    assert Agent.objects.get(pk=agent.pk).name == "First"


@pytest.mark.parametrize(
    ("more", "status", "problem"),
    [
        ("max_turns: 0\n", 400, "max_turns"),
        ("tools: [exceute]\n", 400, "did you mean execute?"),
        ("nosuch: 1\n", 400, "nosuch"),
        ("interrupt_on: {execute: false}\n", 403, "agents.configure_approval"),
        ("everyone: true\n", 403, "agents.share_agent"),
        (": [", 400, "line"),
        ("<script>: 1\n", 400, "&lt;script&gt;"),
    ],
)
@pytest.mark.parametrize("action", ["preview", "store"])
def test_a_file_that_is_refused_is_shown_with_the_reason(
    olga: Client, agent: Agent, action: str, more: str, status: int, problem: str
) -> None:
    text = file_of(agent) + more
    answer = olga.post(URL, {"action": action, "file": text, "base": seen(olga)["base"]})
    page = answer.content.decode()
    assert answer.status_code == status
    assert problem in page
    assert answer.context["file"] == text
    assert Agent.objects.get(pk=agent.pk).version == 1


@pytest.mark.parametrize("action", ["preview", "store"])
def test_the_page_changes_no_other_agent(olga: Client, agent: Agent, action: str) -> None:
    other = make_agent("other", owner=agent.owner)
    text = file_of(other) + "max_turns: 4\n"
    answer = olga.post(URL, {"action": action, "file": text, "base": seen(olga)["base"]})
    assert answer.status_code == 400
    assert Agent.objects.get(pk=other.pk).max_turns != 4


@pytest.mark.parametrize("fields", [{}, {"action": "delete"}, {"action": "save", "name": "x"}])
def test_a_form_that_is_not_complete_changes_nothing(
    olga: Client, agent: Agent, fields: dict[str, str]
) -> None:
    assert olga.post(URL, fields).status_code == 400
    assert Agent.objects.get(pk=agent.pk).version == 1


def test_a_user_of_the_agent_only_reads_who_can_change_it(
    olga: Client, agent: Agent, sign_in: SignIn
) -> None:
    peter = sign_in("peter")
    assert peter.get(URL).status_code == 404
    assert peter.post(URL, fields(olga, name="Mine")).status_code == 404
    Agent.objects.filter(pk=agent.pk).update(everyone=True)
    page = peter.get(URL).content.decode()
    assert "people with the permission to change agents" in page
    assert "You write" not in page
    assert "<textarea" not in page
    refused = peter.post(URL, fields(olga, name="Mine"))
    assert refused.status_code == 403
    assert "You write" not in refused.content.decode()
    assert Agent.objects.get(pk=agent.pk).name == "Writer"


def test_an_operator_changes_it_too(olga: Client, agent: Agent, sign_in: SignIn) -> None:
    root = sign_in("root", superuser=True)
    assert root.post(URL, fields(root, name="Theirs")).status_code == 302
    assert Agent.objects.get(pk=agent.pk).name == "Theirs"


def test_the_owner_can_open_an_inactive_agent(olga: Client, agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(is_active=False)
    assert "inactive" in olga.get(URL).content.decode()
    assert olga.post(URL, fields(olga, description="Old")).status_code == 302
    assert Agent.objects.get(pk=agent.pk).description == "Old"


def test_the_agents_other_pages_lead_to_it(olga: Client, agent: Agent) -> None:
    for path in ("/", "/agents/writer/knowledge/", "/agents/writer/skills/"):
        assert f'href="{URL}"' in olga.get(path).content.decode(), path


def test_a_foreign_page_changes_nothing(agent: Agent) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(agent.owner)
    assert client.post(URL, {"action": "save"}).status_code == 403
