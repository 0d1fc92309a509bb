"""An agent with runs is archived, and then erased with its conversations."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.doors.cli.local_user import local_user
from agents.models import Agent, AuditEntry, Run, Thread
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.actions import set_active
from agents.services.erasure.actions import finish_erasures
from agents.services.erasure.agents import erase_agent, erase_conversations, use_of_agent
from agents.services.errors import Conflict, NotAllowed
from memory.actions.changes import write_file
from memory.models import MemoryRevision
from tests.agents.api.rows import answer_run, make_agent, make_run, make_user
from velproject.cli.main import run_command_line

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def agent(root: User) -> Agent:
    """An agent with a conversation that has ended, and with a memory."""
    agent = make_agent("helper")
    answer_run(make_run(make_user("ann"), agent="helper"), "Done.")
    write_file(agent, "knowledge/a.md", "Ada likes tables.", by=root, source="web")
    return agent


@pytest.mark.both_databases
def test_an_archived_agent_is_erased_with_its_conversations(agent: Agent, root: User) -> None:
    key = agent.pk
    set_active(key, False, by=root)
    assert not agents_for(root).filter(pk=key).exists()
    assert erase_agent(agent, by=root)
    assert not Agent.objects.filter(pk=key).exists()
    assert not Thread.every.exists()
    assert not Run.every.exists()
    assert not MemoryRevision.objects.exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"agent.deleted", "thread.erased"} <= actions


def test_an_active_agent_is_not_erased(agent: Agent, root: User) -> None:
    with pytest.raises(Conflict, match="archive it first"):
        erase_agent(agent, by=root)
    assert Thread.objects.count() == 1


def test_an_agent_with_a_run_that_has_not_ended_stays_whole(agent: Agent, root: User) -> None:
    make_run(make_user("bob"), agent="helper")
    set_active(agent.pk, False, by=root)
    with pytest.raises(Conflict, match="not ended"):
        erase_agent(agent, by=root)
    assert Thread.objects.count() == 2


def test_the_conversations_of_other_agents_are_not_erased_with_it(agent: Agent, root: User) -> None:
    make_agent("other")
    parent = make_run(root, agent="other")
    child = Run.objects.get(agent_version__agent=agent)
    Thread.objects.filter(pk=child.thread_id).update(root=parent.thread_id)
    Run.objects.update(status="completed")
    set_active(agent.pk, False, by=root)
    assert use_of_agent(agent).others == [parent.thread_id]
    with pytest.raises(Conflict, match="other agents"):
        erase_agent(agent, by=root)
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_both_permissions_are_needed(agent: Agent, root: User) -> None:
    set_active(agent.pk, False, by=root)
    user = make_user("carl")
    user.user_permissions.add(Permission.objects.get(codename="erase_thread"))
    with pytest.raises(NotAllowed, match="delete_agent"):
        erase_conversations(agent, by=User.objects.get(pk=user.pk))
    assert Thread.objects.count() == 1


def test_the_commands_archive_and_erase(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    User.objects.filter(pk=local_user().pk).update(is_superuser=True)
    assert run_command_line(["agents", "erase", "helper", "--apply"]) == 2
    assert "archive it first" in capsys.readouterr().err
    assert run_command_line(["agents", "archive", "helper"]) == 0
    assert not Agent.objects.get().is_active
    assert run_command_line(["agents", "archive", "helper", "--undo"]) == 0
    assert Agent.objects.get().is_active
    assert run_command_line(["agents", "archive", "helper"]) == 0
    assert run_command_line(["agents", "erase", "helper"]) == 0
    assert "1 conversations" in capsys.readouterr().out
    assert Agent.objects.exists()
    assert run_command_line(["agents", "erase", "helper", "--apply"]) == 0
    assert not Agent.objects.exists()
    assert not Thread.every.exists()


def test_the_admin_erases_conversations_and_then_deletes_the_agent(
    agent: Agent, root: User
) -> None:
    client = Client()
    client.force_login(root)
    changelist = "/admin/agents/agent/"
    delete = f"{changelist}{agent.pk}/delete/"
    refused = client.get(delete).content.decode()
    assert "Erase conversations" in refused
    set_active(agent.pk, False, by=root)
    form = {"action": "erase_conversations_selected", "_selected_action": agent.pk}
    asked = client.post(changelist, form).content.decode()
    assert "cannot be undone" in asked
    client.post(changelist, {**form, "confirmed": "erase_conversations_selected"}, follow=True)
    assert not Thread.objects.exists()
    finish_erasures()
    client.post(delete, {"post": "yes"})
    assert not Agent.objects.exists()
