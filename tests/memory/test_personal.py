"""The memory of one person with an agent, `me/`: nobody else reads or changes it, at any door."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.mcp_server.starts import McpCall, start_call
from agents.models import Agent, ApprovalRequest, AuditEntry, Epoch, Run, ToolCall
from agents.services.errors import InvalidRequest, NotAllowed
from memory.actions.bundle import export_memory, plan_import
from memory.actions.changes import delete_file, restore_revision, write_file
from memory.actions.edits import change_memory
from memory.actions.purge import plan_purge, purge_history
from memory.folders import Change
from memory.models import MemoryFile, MemoryRevision, Operation
from memory.queries.files import list_memory_entries, memory_bytes
from memory.queries.readers import personal_reader
from tests.agents.api.rows import client_for
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook, send, signed
from tests.agents.features.schedules.rows import fire_all, make_due, make_schedule
from tests.memory.test_cli import Here, here
from tests.support.memory import remembered
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.subagents import delegate

__all__ = ["here"]

FOOD = "me/food.md"
SECRET = "Allergic to nuts."


@pytest.fixture
def agent(transactional_db: None, tmp_path: Path) -> Agent:
    """An agent that all users may use. Its owner is olga; ann has a memory of her own with it."""
    calls = [
        ("read_memory", {"path": FOOD}),
        ("read_memory", {"path": f"/memory/{FOOD}"}),
        ("list_memory", {"directory": "me"}),
        ("list_memory", {"directory": "/"}),
        ("read_file", {"path": f"/memory/{FOOD}"}),
        ("grep", {"pattern": "nuts", "path": "/memory"}),
    ]
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    found = make_agent(make_user("olga"), model=model, everyone=True)
    ann = make_user("ann")
    make_user("bob")
    write_file(found, FOOD, SECRET, by=ann, source="web", reason="I eat out.")
    write_file(found, "me/always.md", "Call me Annie.", by=ann, source="web")
    return found


def user(name: str) -> User:
    return User.objects.get(username=name)


def results(run: Run) -> list[str]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [str(call.result_content) for call in calls]


def told(run: Run) -> str:
    """Return the prompts of a run's thread and the results of its calls."""
    heads = Epoch.objects.filter(thread=run.thread_id).order_by("number")
    return json.dumps([*(head.head["system"] for head in heads), *results(run)])


def assert_nothing_told(run: Run, *, has_own: bool = False) -> None:
    """Fail if a run knows something of ann's. `has_own`: it has a memory of its own person."""
    assert run.status == "completed"
    for secret in ("Allergic", "food.md: ", "Annie"):
        assert secret not in told(run), secret
    assert ("own memory" in told(run)) == has_own


@pytest.mark.both_databases
def test_only_the_runs_of_the_person_read_it(agent: Agent) -> None:
    run = drive_to_end(start_run(user("ann")))
    system = Epoch.objects.get(thread=run.thread_id).head["system"]
    assert f"\n- {FOOD}: {SECRET}" in system
    assert "me/always.md is loaded in each conversation:\n> Call me Annie." in system
    read, again, listed, everything, *by_file_tools = results(run)
    assert SECRET in read
    assert SECRET in again
    assert FOOD in listed
    assert FOOD in everything
    assert all("Allergic" not in result for result in by_file_tools)
    for other in ("bob", "olga"):
        assert_nothing_told(drive_to_end(start_run(user(other))), has_own=True)


def by_rest(agent: Agent, ann: User) -> None:
    body = {"agent": agent.slug, "message": "Hello"}
    assert client_for(ann).post("/api/v1/runs", body, format="json").status_code == 201


def by_chat(agent: Agent, ann: User) -> None:
    said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
    body = {"id": "c1", "messages": [said], "trigger": "submit-message"}
    url = f"/api/v1/agents/{agent.slug}/chat"
    assert client_for(ann).post(url, body, format="json").status_code == 200


def by_page(agent: Agent, ann: User) -> None:
    browser = Client()
    browser.force_login(ann)
    form = {"agent": agent.slug, "message": "Hello"}
    assert browser.post("/", form).status_code == 302


def by_fork(agent: Agent, ann: User) -> None:
    by_rest(agent, ann)
    run = drive_to_end(Run.objects.get())
    body = {"message": "Hello again"}
    answer = client_for(ann).post(f"/api/v1/runs/{run.pk}/fork", body, format="json")
    assert answer.status_code == 201, answer.content


def by_schedule(agent: Agent, ann: User) -> None:
    make_due(make_schedule(ann, agent=agent))
    assert fire_all() == 1


def by_webhook(agent: Agent, ann: User) -> None:
    hook, secret = make_inbound_webhook(ann, agent=agent)
    assert send(hook.pk, signed(secret)).status_code == 202


def by_mcp(agent: Agent, ann: User) -> None:
    Agent.objects.filter(pk=agent.pk).update(mcp_tool=True)
    start_call(McpCall(agent=agent.slug, message="Hello"), owner=ann)


def by_subagent(agent: Agent, ann: User) -> None:
    by_rest(agent, ann)
    with transaction.atomic():
        delegate(Run.objects.get(), "Read it.", model=agent.model)


Start = Callable[[Agent, User], None]


@pytest.mark.parametrize("start", [by_rest, by_chat, by_page, by_fork])
def test_conversations_of_the_person_read_it_at_each_door(agent: Agent, start: Start) -> None:
    ann = user("ann")
    start(agent, ann)
    assert personal_reader(Run.objects.order_by("created_at").last()) == ann.pk


@pytest.mark.parametrize("start", [by_schedule, by_webhook, by_mcp, by_subagent])
def test_runs_that_others_start_in_the_name_of_the_person_do_not_read_it(
    agent: Agent, start: Start
) -> None:
    ann = user("ann")
    start(agent, ann)
    run = Run.objects.order_by("created_at").last()
    assert run.owner_id == ann.pk
    assert personal_reader(run) is None


def test_a_conversation_with_the_text_of_others_does_not_read_it_from_then_on(
    agent: Agent,
) -> None:
    by_webhook(agent, user("ann"))
    run = drive_to_end(Run.objects.get())
    assert_nothing_told(run)
    InboundWebhook.objects.all().delete()
    assert_nothing_told(drive_to_end(start_run(user("ann"), thread=run.thread_id)))


def test_a_prompt_that_has_it_is_not_used_for_the_message_of_another_program(agent: Agent) -> None:
    run = drive_to_end(start_run(user("ann")))
    later = drive_to_end(start_run(user("ann"), thread=run.thread_id, source="mcp"))
    first, second = Epoch.objects.filter(thread=run.thread_id).order_by("number")
    assert "Annie" in first.head["system"]
    assert "Annie" not in second.head["system"]
    assert all("Allergic" not in result for result in results(later))


def test_a_subagent_does_not_read_it(agent: Agent) -> None:
    parent = start_run(user("ann"))
    with transaction.atomic():
        (child,) = delegate(parent, "Read it.", model=agent.model)
    assert child.owner_id == user("ann").pk
    assert_nothing_told(drive_to_end(child))
    assert "in this person's own conversations" in results(child)[0]


@pytest.mark.parametrize("saving", ["ask", "save"])
def test_a_run_that_does_not_read_it_cannot_propose_a_change(
    agent: Agent, tmp_path: Path, saving: str
) -> None:
    path = f"/memory/{FOOD}"
    calls = [
        ("write_memory", {"path": FOOD, "content": "Eats all.", "reason": "It was said."}),
        ("write_memory", {"path": FOOD, "reason": "It was said.", "operation": "delete"}),
        ("write_file", {"path": path, "content": "Eats all."}),
        ("edit_file", {"path": path, "old_text": "nuts", "new_text": "nothing"}),
    ]
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    agent.model = script_file(tmp_path, [*turns, {"text": "Done."}], "writes.json")
    agent.memory_saving = saving
    agent.save()
    start = start_run(user("ann"), source="mcp")
    run = drive_to_end(start, until=("waiting", "completed", "failed"))
    assert run.status == "completed"
    assert all("Only this person changes it" in result for result in results(run))
    assert not ApprovalRequest.objects.exists()
    assert [row.content for row in MemoryFile.every.filter(path=FOOD)] == [SECRET]


def test_the_note_about_changes_names_it_to_the_person_only(agent: Agent) -> None:
    runs = {name: drive_to_end(start_run(user(name))) for name in ("ann", "bob")}
    write_file(agent, FOOD, "Eats all.", by=user("ann"), source="web")
    for name, note in (("ann", f"Your memory has changed since: {FOOD}."), ("bob", "")):
        run = drive_to_end(start_run(user(name), thread=runs[name].thread_id))
        assert run.opening_note == note


def every_answer(client: APIClient, agent: Agent, path: str) -> list[Any]:
    base = f"/api/v1/agents/{agent.pk}/memory"
    return [
        client.get(f"{base}/{path}"),
        client.get(f"{base}-revisions?path={path}"),
        client.get(f"{base}-revisions?path={path}&number=1"),
        client.delete(f"{base}/{path}"),
        client.post(f"{base}-restore", {"path": path, "revision": 1}, format="json"),
        client.post(f"{base}-purge", {"path": path}, format="json"),
    ]


@pytest.mark.both_databases
def test_rest_gives_everybody_their_own(agent: Agent) -> None:
    User.objects.create_superuser("root")
    base = f"/api/v1/agents/{agent.pk}/memory"
    for name in ("bob", "olga", "root"):
        client = client_for(user(name))
        for answer in every_answer(client, agent, FOOD):
            assert answer.status_code == 404, answer.content
            assert b"nuts" not in answer.content
        for directory in ("me", "all"):
            assert b"food" not in client.get(f"{base}?directory={directory}").content
        for path in ("me/../me/food.md", "me", "people/food.md", "ME/food.md"):
            assert client.get(f"{base}/{path}").status_code == 404
    bob, ann = client_for(user("bob")), client_for(user("ann"))
    written = bob.put(f"{base}/{FOOD}", {"content": "Likes soup."}, format="json")
    assert (written.status_code, written.json()["revision"]) == (201, 1)
    assert bob.get(f"{base}/{FOOD}").json()["content"] == "Likes soup."
    assert ann.get(f"{base}/{FOOD}").json()["content"] == SECRET
    names = [file["path"] for file in ann.get(f"{base}?directory=me").json()["files"]]
    assert names == ["me/always.md", FOOD]
    read, listed, one, deleted, restored, purged = every_answer(ann, agent, FOOD)
    assert read.json()["revision"] == 1
    assert [entry["by"] for entry in listed.json()["results"]] == ["ann"]
    assert one.json()["content"] == SECRET
    assert deleted.status_code == 204
    assert restored.json()["revision"] == 3
    assert purged.json()["revisions"] == 2
    assert ann.get(f"{base}/{FOOD}").json()["content"] == SECRET
    assert bob.get(f"{base}/{FOOD}").json()["revision"] == 1


def test_people_without_the_agent_have_no_personal_memory(agent: Agent) -> None:
    agent.everyone = False
    agent.save()
    ann = user("ann")
    assert client_for(ann).get(f"/api/v1/agents/{agent.pk}/memory/{FOOD}").status_code == 404
    for change in (
        lambda: write_file(agent, FOOD, "x", by=ann, source="web"),
        lambda: delete_file(agent, FOOD, by=ann, source="web"),
        lambda: restore_revision(agent, FOOD, 1, by=ann, source="web"),
        lambda: purge_history(agent, FOOD, by=ann, source="web"),
    ):
        with pytest.raises(NotAllowed):
            change()


def test_a_fork_of_another_person_is_refused(agent: Agent) -> None:
    run = drive_to_end(start_run(user("ann")))
    for name in ("bob", "olga"):
        answer = client_for(user(name)).post(f"/api/v1/runs/{run.pk}/fork", {}, format="json")
        assert answer.status_code in (403, 404)
        assert b"nuts" not in answer.content
    assert Run.every.count() == 1


def test_a_change_without_a_person_is_refused(agent: Agent) -> None:
    change = Change(FOOD, Operation.WRITE, "Eats all.", 1, "web", by_id=user("ann").pk)
    with pytest.raises(InvalidRequest, match="memory of one person"):
        change_memory(agent.pk, change)
    with pytest.raises(InvalidRequest, match="memory of one person"):
        plan_purge(agent, FOOD)
    for path, person in ((FOOD, None), ("knowledge/food.md", user("ann"))):
        with pytest.raises(IntegrityError), transaction.atomic():
            MemoryFile.every.create(
                agent=agent, path=path, person=person, content="", size_bytes=0, revision=1
            )


def test_folders_do_not_contain_it(agent: Agent, tmp_path: Path) -> None:
    remembered(agent, notes="Notes")
    assert "knowledge/notes.md" in export_memory(agent.pk, tmp_path / "out")
    assert not (tmp_path / "out" / "me").exists()
    (tmp_path / "out" / "me").mkdir()
    (tmp_path / "out" / FOOD).write_text("Eats all.")
    plan = plan_import(agent, tmp_path / "out")
    assert (plan.files, plan.ignored) == ([], ["me", "tools.json"])
    assert all(path != FOOD for path in plan.kept)


def test_the_command_has_that_of_the_local_account(here: Here, agent: Agent) -> None:
    assert here("memory", "read", "tester", FOOD)[0] == 2
    assert FOOD not in here("memory", "list", "tester")[1]
    assert here("memory", "history", "tester", FOOD)[0] == 2
    assert here("memory", "write", "tester", FOOD, stdin="Mine")[0] == 0
    assert here("memory", "append", "tester", FOOD, stdin="More")[0] == 0
    assert here("memory", "read", "tester", FOOD)[1] == "Mine\nMore"
    assert FOOD in here("memory", "list", "tester", "me")[1]
    assert "append" in here("memory", "history", "tester", FOOD)[1]
    assert here("memory", "restore", "tester", FOOD, "1")[0] == 0
    assert here("memory", "delete", "tester", FOOD)[0] == 0
    assert "contents of 4 revisions" in here("memory", "purge", "tester", FOOD, "--apply")[1]
    assert MemoryRevision.every.get(person=user("ann"), path=FOOD).content == SECRET


def test_the_page_shows_everybody_their_own(agent: Agent, client: Any) -> None:
    url = f"/agents/{agent.slug}/knowledge/"
    client.force_login(user("bob"))
    assert "food" not in client.get(url).content.decode()
    for query in (f"?path={FOOD}", f"?path={FOOD}&revision=1", f"?path={FOOD}&edit=1"):
        assert client.get(f"{url}{query}").status_code == 404
    for action in ("delete", "restore", "purge"):
        form = {"action": action, "path": FOOD, "base": "1", "revision": "1", "sure": "yes"}
        client.post(url, form)
    assert 'placeholder="me/"' in client.get(f"{url}?edit=1").content.decode()
    form = {"action": "save", "path": FOOD, "base": "0", "content": "Likes soup."}
    assert client.post(url, form).status_code == 302
    page = client.get(f"{url}?path={FOOD}").content.decode()
    assert "Likes soup." in page
    assert "Edit</a>" in page
    client.force_login(user("ann"))
    page = client.get(f"{url}?path={FOOD}&revision=1").content.decode()
    assert SECRET in page
    assert "soup" not in page


def test_the_admin_shows_nobodys(agent: Agent, client: Any) -> None:
    client.force_login(User.objects.create_superuser("root"))
    for model, rows in (("memoryfile", MemoryFile.every), ("memoryrevision", MemoryRevision.every)):
        listing = client.get(f"/admin/memory/{model}/")
        assert listing.status_code == 200
        assert b"me/food" not in listing.content
        for row in rows.all():
            answer = client.get(f"/admin/memory/{model}/{row.pk}/change/", follow=True)
            assert b"nuts" not in answer.content
            assert b"Annie" not in answer.content


@pytest.mark.both_databases
def test_it_is_erased_with_the_person_and_with_the_agent(agent: Agent) -> None:
    write_file(agent, FOOD, "Likes soup.", by=user("bob"), source="web")
    assert memory_bytes(agent.pk) == 0
    assert all(not entry.path.startswith("me/") for entry in list_memory_entries(agent.pk))
    user("ann").delete()
    assert [row.content for row in MemoryFile.every.all()] == ["Likes soup."]
    assert [row.content for row in MemoryRevision.every.all()] == ["Likes soup."]
    agent.delete()
    assert not MemoryFile.every.exists()
    assert not MemoryRevision.every.exists()


def test_the_admin_deletes_a_person_with_the_memory_and_hides_its_content(
    agent: Agent, client: Any
) -> None:
    staff = User.objects.create_superuser("root")
    client.force_login(staff)
    url = f"/admin/auth/user/{user('ann').pk}/delete/"
    page = client.get(url).content.decode()
    assert "food" not in page
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="ann").exists()
    assert not MemoryRevision.every.exists()
    run = start_run(user("bob"))
    url = f"/admin/auth/user/{user('bob').pk}/delete/"
    assert client.post(url, {"post": "yes"}).status_code != 302
    assert Run.every.filter(pk=run.pk).exists()


def test_the_audit_log_hides_personal_paths(agent: Agent) -> None:
    purge_history(agent, FOOD, by=user("ann"), source="web")
    entries = AuditEntry.objects.filter(action__startswith="memory.")
    assert entries.count() == 3
    for entry in entries:
        assert "food" not in str(vars(entry))
        assert "eat out" not in str(vars(entry))
