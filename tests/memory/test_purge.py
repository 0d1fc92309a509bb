"""Purging the history of a file erases its earlier contents at every door, and is audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.doors.cli.local_user import local_user
from agents.models import Agent, AuditEntry, Run, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import InvalidRequest, NotAllowed, NotFound
from memory.actions.bundle import export_memory
from memory.actions.changes import delete_file, restore_revision, write_file
from memory.actions.purge import plan_purge, purge_history
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision
from tests.agents.api.rows import client_for
from tests.agents.web.conftest import SignIn
from tests.support import site_writer
from tests.support.runs import drive_to_end, make_agent, make_user, start_run
from velproject.cli.main import run_command_line

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
SECRET = "The door code is 4711."


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def agent(ann: User) -> Agent:
    return make_agent(ann, everyone=True)


def deleted(agent: Agent, by: User) -> None:
    """Make a file with the secret, change it, and delete it."""
    change: dict[str, Any] = {"by": by, "source": "web"}
    write_file(agent, PATH, SECRET, reason=f"Ann said: {SECRET}", **change)
    write_file(agent, PATH, f"{SECRET} It is new.", **change)
    delete_file(agent, PATH, **change)


def stored_texts() -> str:
    """Everything that the tables of the memory hold, as one text."""
    rows = [
        *MemoryFile.objects.values("content"),
        *MemoryRevision.objects.values("content", "reason", "sha256"),
        *MemoryEditRequest.objects.values(),
    ]
    return json.dumps(rows, default=str)


@pytest.mark.both_databases
def test_a_deleted_file_is_purged_and_the_audit_log_names_the_person(
    ann: User, agent: Agent
) -> None:
    deleted(agent, ann)
    assert SECRET in stored_texts()
    done = purge_history(agent, PATH, by=ann, source="api")
    assert (done.revisions, done.requests, done.threads) == (3, 0, [])
    assert SECRET not in stored_texts()
    assert list(MemoryRevision.objects.values_list("number", "operation", "sha256")) == [
        (3, "delete", ""),
        (2, "write", ""),
        (1, "write", ""),
    ]
    entry = AuditEntry.objects.get(action="memory.purged")
    assert (entry.actor_id, entry.changes["revisions"]) == (str(ann.pk), [3, 0])
    for number in (1, 2):
        with pytest.raises(NotFound, match="purged"):
            restore_revision(agent, PATH, number, by=ann, source="api")
    # Its name and its numbers can be used again.
    assert write_file(agent, PATH, "new", by=ann, source="api") == 4
    assert purge_history(agent, PATH, by=ann, source="api").revisions == 0


def test_the_current_file_stays_and_an_export_has_only_it(
    ann: User, agent: Agent, tmp_path: Path
) -> None:
    write_file(agent, PATH, SECRET, by=ann, source="web")
    write_file(agent, PATH, "The code is in the vault.", by=ann, source="web")
    purge_history(agent, PATH, by=ann, source="api")
    assert SECRET not in stored_texts()
    assert MemoryFile.objects.get().content == "The code is in the vault."
    export_memory(agent.pk, tmp_path / "out")
    assert (tmp_path / "out" / PATH).read_text() == "The code is in the vault."
    with pytest.raises(NotFound):
        restore_revision(agent, PATH, 1, by=ann, source="api")


def test_texts_of_decided_requests_are_purged_and_a_waiting_one_stays(
    ann: User, agent: Agent
) -> None:
    run = start_run(ann)
    first = site_writer.ask_memory(run.pk, PATH, SECRET, reason=SECRET)
    decide_approval(first, DecisionRequest("approve"), by=ann)
    delete_file(agent, PATH, by=ann, source="web")
    second = site_writer.ask_memory(run.pk, PATH, "Ada likes tables.", call_id="toolu_n")
    done = purge_history(agent, PATH, by=ann, source="api")
    assert (done.requests, done.threads) == (1, [run.thread_id])
    assert SECRET not in stored_texts()
    client = client_for(ann)
    gone = client.get(f"/api/v1/approvals/{first}")
    assert SECRET not in gone.content.decode()
    assert (gone.json()["memory"]["proposed_content"], gone.json()["input"]) == (None, {})
    waits = client.get(f"/api/v1/approvals/{second}").json()["memory"]
    assert waits["proposed_content"] == "Ada likes tables."
    decide_approval(second, DecisionRequest("approve"), by=ann)
    assert MemoryFile.objects.get().content == "Ada likes tables."


def test_rest_purges_and_shows_the_result(ann: User, agent: Agent) -> None:
    deleted(agent, ann)
    client, base = client_for(ann), f"/api/v1/agents/{agent.pk}"
    answer = client.post(f"{base}/memory-purge", {"path": PATH}, format="json")
    assert (answer.status_code, answer.json()["revisions"]) == (200, 3)
    entries = client.get(f"{base}/memory-revisions?path={PATH}").json()["results"]
    assert [(entry["number"], entry["is_purged"]) for entry in entries] == [
        (3, True),
        (2, True),
        (1, True),
    ]
    one = client.get(f"{base}/memory-revisions?path={PATH}&number=1").json()
    assert (one["content"], one["is_purged"], one["is_deleted"]) == (None, True, False)
    body = {"path": PATH, "revision": 1}
    restored = client.post(f"{base}/memory-restore", body, format="json")
    assert restored.status_code == 404


def test_a_reader_cannot_purge(ann: User, agent: Agent) -> None:
    deleted(agent, ann)
    with pytest.raises(NotAllowed):
        purge_history(agent, PATH, by=make_user("bob"), source="api")
    answer = client_for(make_user("cid")).post(
        f"/api/v1/agents/{agent.pk}/memory-purge", {"path": PATH}, format="json"
    )
    assert answer.status_code == 403
    assert SECRET in stored_texts()


@pytest.mark.parametrize("path", ["knowledge/none.md", "../x", "AGENTS.md", "skills/report.md"])
def test_a_file_without_a_history_to_purge_is_refused(agent: Agent, path: str) -> None:
    with pytest.raises((NotFound, InvalidRequest)):
        plan_purge(agent, path)


def test_the_command_shows_first_and_purges_with_apply(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    user = local_user()
    agent = make_agent(user)
    deleted(agent, user)
    assert run_command_line(["memory", "purge", agent.slug, PATH]) == 0
    assert "3 revisions" in capsys.readouterr().out
    assert SECRET in stored_texts()
    assert run_command_line(["memory", "purge", agent.slug, PATH, "--apply"]) == 0
    assert SECRET not in stored_texts()
    assert run_command_line(["memory", "history", agent.slug, PATH]) == 0
    assert "purged" in capsys.readouterr().out
    assert run_command_line(["memory", "read", agent.slug, PATH, "--revision", "1"]) == 2
    assert "purged" in capsys.readouterr().err


def test_the_page_and_the_admin_show_that_it_is_purged(sign_in: SignIn) -> None:
    olga: Client = sign_in("olga")
    user = User.objects.get(username="olga")
    agent = make_agent(user)
    deleted(agent, user)
    url = f"/agents/{agent.slug}/knowledge/"
    assert "Purge this history" in olga.get(f"{url}?path={PATH}").content.decode()
    form = {"action": "purge", "path": PATH}
    refused = olga.post(url, form, follow=True).content.decode()
    assert "Confirm" in refused
    assert SECRET in stored_texts()
    done = olga.post(url, {**form, "sure": "yes"}, follow=True).content.decode()
    assert "3 revisions are erased" in done
    assert "Purge this history" not in done
    shown = olga.get(f"{url}?path={PATH}&revision=1").content.decode()
    assert "purged" in shown
    assert SECRET not in shown
    User.objects.create_superuser("sysadmin", password="x")
    admin = Client()
    admin.force_login(User.objects.get(username="sysadmin"))
    first = MemoryRevision.objects.get(number=1)
    page = admin.get(f"/admin/memory/memoryrevision/{first.pk}/change/").content.decode()
    assert "purged" in page
    assert "Restore this revision" not in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_the_conversations_with_texts_of_the_file_are_named_and_can_be_erased(
    ann: User, agent: Agent
) -> None:
    def conversation() -> str:
        return drive_to_end(start_run(ann)).thread_id

    def called(tool: str, given: str, result: str) -> str:
        run = start_run(ann)
        ToolCall.objects.create(
            run=run, turn=1, position=0, tool=tool, input=given, result=result, effect="read"
        )
        Run.objects.filter(pk=run.pk).update(status="completed")
        return run.thread_id

    before = conversation()
    unread = called("read_file", '{"path": "/workspace/notes.md"}', f'"{SECRET}"')
    read = called("read_memory", f'{{"path": "{PATH}"}}', f'"{SECRET}"')
    quoted = called("grep", '{"pattern": "4711"}', f'"/memory/{PATH}:3: {SECRET}"')
    write_file(agent, PATH, f"Codes\n\n{SECRET}", by=ann, source="web")
    index_only = conversation()
    write_file(agent, PATH, "Nothing.", by=ann, source="web")
    after = conversation()
    bob = make_user("bob")
    for person in (ann, bob):
        write_file(agent, "me/a.md", SECRET, by=person, source="web")
    own = conversation()
    write_file(agent, "me/a.md", "Nothing.", by=ann, source="web")
    delete_file(agent, "me/a.md", by=bob, source="web")

    named = purge_history(agent, PATH, by=ann, source="web").threads
    assert named == sorted([index_only, read, quoted])
    assert not {before, unread, after, own} & set(named)
    assert plan_purge(agent, "me/a.md", ann.pk).threads == [own]
    assert plan_purge(agent, "me/a.md", bob.pk).threads == []
    for thread in named:
        assert client_for(ann).delete(f"/api/v1/threads/{thread}").status_code in (202, 204)
    assert plan_purge(agent, PATH).threads == []
