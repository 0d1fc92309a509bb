"""Agents as files in the admin and over REST; trial runs; bulk actions."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.contrib import admin
from django.contrib.messages.storage.cookie import CookieStorage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import RequestFactory
from django.urls import reverse

from agents.doors.admin.bulk import Bulk, carry_out
from agents.models import Agent, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import NotAllowed
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, messages_of, page_url, text_of
from tests.agents.api.rows import client_for

pytestmark = pytest.mark.django_db

IMPORT = "admin:agents_agent_import"
TEXT = "name: Helper\nslug: helper\nmax_turns: 7\n"


def test_a_file_is_shown_then_imported_as_it_was_shown():
    client = client_of(rows.superuser())
    file = SimpleUploadedFile("a.yaml", TEXT.encode())

    shown = client.post(reverse(IMPORT), {"file": file})
    assert not Agent.objects.exists()
    assert "+max_turns: 7" in text_of(shown)
    base = shown.context["plan"].base
    done = client.post(
        reverse(IMPORT), {"text": TEXT.replace("\n", "\r\n"), "base": base}, follow=True
    )

    agent = Agent.objects.get()
    assert (agent.slug, agent.max_turns, agent.version) == ("helper", 7, 1)
    assert messages_of(done) == ["The agent helper is stored as version 1."]
    exported = client.get(reverse("admin:agents_agent_export", args=[agent.pk]))
    assert exported["Content-Disposition"] == 'attachment; filename="helper.yaml"'
    assert text_of(exported) == TEXT


def test_a_file_changed_since_the_preview_is_shown_again():
    client = client_of(rows.superuser())
    agent = rows.agent("helper", name="Helper")
    base = client.post(reverse(IMPORT), {"text": TEXT}).context["plan"].base
    agent.max_turns = 3
    save_agent(agent)

    response = client.post(reverse(IMPORT), {"text": TEXT, "base": base})

    assert response.status_code == 409
    assert "-max_turns: 3" in text_of(response)
    assert Agent.objects.get().max_turns == 3


def test_a_hostile_file_is_text():
    client = client_of(rows.superuser())
    text = TEXT + 'description: "</textarea><script>alert(1)</script>\\u202e"\n'

    page = text_of(client.post(reverse(IMPORT), {"text": text}))
    bad = client.post(reverse(IMPORT), {"text": TEXT + "tools: ['<script>\u202e']\n"})

    assert "<script>alert" not in page
    assert bad.status_code == 400
    assert "line 4: tools.0: &#x27;&lt;script&gt;" in text_of(bad)
    assert "\u202e" not in text_of(bad).split("<textarea")[0]
    assert (
        "script-src" in bad["Content-Security-Policy"]
        or "default-src" in (bad["Content-Security-Policy"])
    )
    assert client.post(reverse(IMPORT), {"text": "x" * 1_000_001}).status_code == 400
    assert (
        client.post(reverse(IMPORT), {"file": SimpleUploadedFile("a", b"\xff\xfe")}).status_code
        == 400
    )


def test_importing_needs_the_permission_to_define_agents():
    client = client_of(rows.staff("viewer", "view_agent"))
    assert client.get(reverse(IMPORT)).status_code == 403
    assert client.post(reverse(IMPORT), {"text": TEXT}).status_code == 403
    editor = client_of(rows.staff("ed", "add_agent"))
    refused = editor.post(reverse(IMPORT), {"text": TEXT + "network: full\n"})
    assert refused.status_code == 403
    assert "configure_sandbox" in text_of(refused)
    assert not Agent.objects.exists()


def test_several_are_exported_as_a_zip():
    client = client_of(rows.staff("viewer", "view_agent"))
    one, two = rows.agent("one"), rows.agent("two")

    first = act(client, "export_selected", one, two)
    second = act(client, "export_selected", one, two)

    assert first.content == second.content
    with zipfile.ZipFile(io.BytesIO(first.content)) as archive:
        assert archive.namelist() == ["one.yaml", "two.yaml"]
        assert archive.read("one.yaml") == b"name: One\nslug: one\neveryone: true\n"


def test_trying_starts_a_run_of_ones_own_with_the_stored_version():
    chief = rows.staff("chief", "view_agent")
    agent = rows.agent("helper")
    url = reverse("admin:agents_agent_try", args=[agent.pk])
    client = client_of(chief)
    assert url in text_of(client.get(page_url(agent)))

    response = client.post(url, {"message": "Hello"})

    run = Run.objects.get()
    assert response["Location"] == reverse("web:run", args=[run.pk])
    assert (run.owner, run.agent_version.number, run.source) == (chief, 1, "admin")
    assert client.post(url, {"message": " "}).status_code == 400
    assert Run.objects.count() == 1


def test_trying_an_agent_needs_the_permission_to_use_it():
    agent = rows.agent("helper", everyone=False)
    url = reverse("admin:agents_agent_try", args=[agent.pk])

    viewer = client_of(rows.staff("viewer", "view_agent"))
    assert "because it is not shared with you" in text_of(viewer.get(url))
    assert viewer.post(url, {"message": "Hello"}).status_code == 400
    assert client_of(rows.staff("other")).post(url, {"message": "Hello"}).status_code == 403
    assert not Run.objects.exists()


def test_many_are_switched_after_a_page_that_counts_them():
    client = client_of(rows.staff("ed", "view_agent", "change_agent"))
    one, two = rows.agent("one"), rows.agent("two", is_active=False)

    asked = act(client, "deactivate_selected", one, two)
    assert "Deactivate 2 agents?" in text_of(asked)
    assert Agent.objects.get(pk=one.pk).is_active
    said = messages_of(
        act(client, "deactivate_selected", one, two, confirmed="deactivate_selected")
    )

    assert said == ["1 of 2: deactivated (one).", "1 of 2: deactivated already (two)."]
    assert not Agent.objects.filter(is_active=True).exists()
    viewer = client_of(rows.staff("viewer", "view_agent"))
    act(viewer, "activate_selected", one, confirmed="activate_selected")
    assert not Agent.objects.filter(is_active=True).exists()


def test_some_refusals_do_not_keep_the_others_and_are_counted():
    for slug in ("one", "two", "three"):
        rows.agent(slug)
    request = RequestFactory().post("/", {"confirmed": "activate_selected"})
    request.user = rows.superuser()
    request.session = {}
    request._messages = CookieStorage(request)
    done = []

    def do(agent: Agent) -> str:
        if agent.slug == "two":
            raise NotAllowed("Not <this> one.")
        done.append(agent.slug)
        return "activated"

    failed = "%(failed)s of %(count)s could not be activated: %(problems)s"
    bulk = Bulk("activate_selected", "Activate %(count)s %(rows)s", failed)
    page = admin.site._registry[Agent]
    carry_out(
        page, request, Agent.objects.order_by("created_at"), bulk, do, lambda agent: agent.slug
    )

    assert done == ["one", "three"]
    assert [str(message) for message in request._messages] == [
        "2 of 3: activated (one, three).",
        "1 of 3 could not be activated: two: Not <this> one.",
    ]


def test_an_owner_exports_and_imports_the_own_agent_over_rest():
    ada = rows.user()
    agent = rows.agent("helper", owner=ada, everyone=False)
    client = client_for(ada, "read", "manage")
    text = client.get("/api/v1/agents/helper/export").json()["yaml"]
    body = {"yaml": text + "system_prompt: Help.\n", "dry_run": True}
    dry = client.post("/api/v1/agents/import", body, format="json")
    assert (dry.status_code, dry.json()["is_new"]) == (200, False)
    body = {"yaml": body["yaml"], "base": dry.json()["base"]}
    done = client.post("/api/v1/agents/import", body, format="json")
    assert (done.status_code, done.json()["version"]) == (200, 2)
    assert Agent.objects.get(pk=agent.pk).system_prompt == "Help."
    for refused in (text.replace("slug: helper", "slug: new"), text + "network: full\n"):
        answer = client.post("/api/v1/agents/import", {"yaml": refused}, format="json")
        assert answer.status_code == 403, refused
    assert Agent.objects.count() == 1


def test_over_rest_with_the_scope_and_the_permission_only():
    root, ada = rows.superuser(), rows.user()
    manager, reader = client_for(root, "read", "manage"), client_for(root, "read", "run")

    dry = manager.post("/api/v1/agents/import", {"yaml": TEXT, "dry_run": True}, format="json")
    assert (dry.status_code, dry.json()["is_new"], dry.json()["id"]) == (200, True, None)
    assert not Agent.objects.exists()
    base = {"yaml": TEXT, "base": dry.json()["base"]}
    done = manager.post("/api/v1/agents/import", base, format="json")
    assert (done.status_code, done.json()["version"]) == (200, 1)
    assert manager.post("/api/v1/agents/import", base, format="json").status_code == 409
    url = f"/api/v1/agents/{Agent.objects.get().pk}/export"
    assert reader.get(url).json() == {"slug": "helper", "yaml": TEXT}
    bad = manager.post("/api/v1/agents/import", {"yaml": TEXT + "x: 1"}, format="json")
    assert (bad.status_code, bad.json()["code"]) == (400, "invalid_file")
    assert "line 4: x: there is no such field" in bad.json()["detail"]

    refused = reader.post("/api/v1/agents/import", {"yaml": TEXT}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    of_ada = client_for(ada, "read", "manage")
    body = {"yaml": TEXT.replace("helper", "other")}
    assert of_ada.post("/api/v1/agents/import", body, format="json").status_code == 403
    assert of_ada.get(url).status_code == 404
    Agent.objects.update(everyone=True)
    assert of_ada.get(url).status_code == 403
