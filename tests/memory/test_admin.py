"""Agents' memory in the admin: readable with permission, never editable, with restore."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from agents.models import Agent, ApprovalRequest
from memory.actions.changes import write_file
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, text_of
from tests.support import site_writer

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
HOSTILE = "<script>alert(1)</script>\u202e"
MODELS = ("memoryfile", "memoryrevision", "memoryeditrequest")


@pytest.fixture
def root() -> User:
    return rows.superuser()


@pytest.fixture
def agent(root: User) -> Agent:
    return rows.agent("coder", owner=root)


def remember(agent: Agent, by: User, *contents: str) -> None:
    for content in contents:
        write_file(agent, PATH, content, by=by, source="web", reason=f"Why {HOSTILE}")


def ask(agent: Agent, owner: User) -> ApprovalRequest:
    run = rows.run(owner, slug=agent.slug)
    made = site_writer.ask_memory(run.pk, PATH, f"{HOSTILE}\nagent's", reason=HOSTILE)
    return ApprovalRequest.objects.get(pk=made)


def listing(name: str) -> str:
    return reverse(f"admin:memory_{name}_changelist")


def page(row: Any) -> str:
    return reverse(f"admin:memory_{row._meta.model_name}_change", args=[row.pk])


def staff_who_sees(name: str, *permissions: str) -> User:
    member = rows.staff(name, *permissions)
    seen = Permission.objects.filter(codename__in=[f"view_{model}" for model in MODELS])
    member.user_permissions.add(*seen)
    return member


def test_all_pages_show_contents_as_text(root: User, agent: Agent) -> None:
    remember(agent, root, f"one {HOSTILE}\n", f"two {HOSTILE}\n")
    asked = ask(agent, root)
    client = client_of(root)
    pages = [listing(model) for model in MODELS]
    pages += [page(MemoryFile.objects.get()), page(MemoryRevision.objects.get(number=2))]
    pages += [page(MemoryEditRequest.objects.get())]
    for url in pages:
        response = client.get(url)
        assert response.status_code == 200, url
        assert "<script>alert" not in text_of(response), url
        assert "\u202e" not in text_of(response), url
    file, revision, request = [text_of(client.get(url)) for url in pages[3:]]
    assert "two &lt;script&gt;" in file
    assert "⟨U+202E⟩" in file
    assert "diff-row removed" in revision
    assert reverse("admin:agents_approvalrequest_change", args=[asked.pk]) in request
    assert "pending" in request


def test_nothing_is_added_edited_or_deleted(root: User, agent: Agent) -> None:
    remember(agent, root, "one")
    client = client_of(root)
    for row in (MemoryFile.objects.get(), MemoryRevision.objects.get()):
        name = row._meta.model_name
        assert client.get(reverse(f"admin:memory_{name}_add")).status_code == 403
        assert client.post(reverse(f"admin:memory_{name}_delete", args=[row.pk])).status_code == 403
        client.post(page(row), {"content": "evil", "path": "knowledge/evil.md"})
        row.refresh_from_db()
        assert (row.content, row.path) == ("one", PATH)


def test_a_revision_is_restored(root: User, agent: Agent) -> None:
    remember(agent, root, "one", "two")
    first, second = MemoryRevision.objects.order_by("number")
    client = client_of(root)
    assert 'name="restore"' in text_of(client.get(page(first)))
    assert 'name="restore"' not in text_of(client.get(page(second)))
    response = client.post(page(first), {"restore": "yes"}, follow=True)
    assert messages_of(response) == [f"{PATH} is restored, as revision 3."]
    assert MemoryFile.objects.get().content == "one"
    made = MemoryRevision.objects.get(number=3)
    assert (made.source, made.created_by, made.operation) == ("admin", root, "restore")
    response = client.post(page(first), {"restore": "yes"}, follow=True)
    assert "already has the content" in messages_of(response)[0]


def test_a_viewer_restores_nothing(root: User, agent: Agent) -> None:
    remember(agent, root, "one", "two")
    first = MemoryRevision.objects.get(number=1)
    client = client_of(staff_who_sees("sam", "view_all_runs"))
    assert 'name="restore"' not in text_of(client.get(page(first)))
    response = client.post(page(first), {"restore": "yes"}, follow=True)
    assert "Only the owner of" in messages_of(response)[0]
    assert MemoryFile.objects.get().content == "two"


def test_staff_see_the_memory_of_agents_that_they_may_use(root: User, agent: Agent) -> None:
    remember(agent, root, "one")
    ask(agent, root)
    sam = client_of(staff_who_sees("sam"))
    file, revision = MemoryFile.objects.get(), MemoryRevision.objects.get()
    assert sam.get(page(file)).status_code == 200
    assert sam.get(page(MemoryEditRequest.objects.get())).status_code == 302, "another's request"
    Agent.objects.filter(pk=agent.pk).update(everyone=False)
    for row in (file, revision):
        assert sam.get(page(row)).status_code == 302
        assert sam.post(page(row), {"restore": "yes"}).status_code == 302
    assert PATH not in text_of(sam.get(listing("memoryfile")))


def test_staff_without_the_permission_see_nothing(root: User, agent: Agent) -> None:
    remember(agent, root, "one")
    client = client_of(rows.staff("sam", "view_all_runs"))
    assert client.get(listing("memoryfile")).status_code == 403
    assert client.get(page(MemoryFile.objects.get())).status_code == 403
