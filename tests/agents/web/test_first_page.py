"""The first page, the history's filters, the usage page and the colours."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Message, MessageRole, Run
from tests.agents.web.conftest import SignIn
from tests.support import site_writer


def attention(client: Client) -> str:
    html = client.get("/").content.decode()
    return section(html, "attention")


def section(html: str, heading: str) -> str:
    return html.partition(f'id="{heading}"')[2].partition("</section>")[0]


@pytest.mark.slow
def test_the_page_lists_work_that_needs_attention(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    sign_in("peter")
    assert attention(olga) == ""
    asked, failed, old, foreign = (
        site_writer.make_run(who) for who in ("olga", "olga", "olga", "peter")
    )
    request = site_writer.ask(asked, "execute", {"command": "ls"})
    now = timezone.now()
    Run.objects.filter(pk__in=[failed, foreign]).update(
        status="failed", ended_at=now, error_message="no\u202e key"
    )
    Run.objects.filter(pk=old).update(status="failed", ended_at=now - timedelta(days=9))
    shown = attention(olga)
    assert f"/approvals/{request}/" in shown
    assert f"/runs/{asked}/" not in shown  # The request has the link to decide.
    assert "Hello · Assistant" in shown
    assert f"/runs/{failed}/" in shown
    assert "no⟨U+202E⟩ key" in shown
    active = site_writer.make_run("olga")
    html = olga.get("/").content.decode()
    assert active not in section(html, "attention")
    assert f"/runs/{active}/" in section(html, "active")
    assert f"/runs/{asked}/" not in section(html, "active")
    assert old not in shown
    assert foreign not in shown
    # Another user continued the conversation.
    site_writer.make_run("olga", thread=Run.objects.get(pk=failed).thread_id)
    assert f"/runs/{failed}/" not in attention(olga)


def test_running_again_starts_with_the_same_message(run: str, sign_in: SignIn) -> None:
    html = sign_in("olga").get(f"/?again={run}").content.decode()
    assert "Hello &lt;b&gt;there&lt;/b&gt;\u202e</textarea>" in html
    assert "&lt;b&gt;there" not in sign_in("peter").get(f"/?again={run}").content.decode()
    assert sign_in("peter").get("/?again=%00&agent=%00").status_code == 200


def test_the_form_has_the_agent_of_the_last_run_that_was_started_here(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    site_writer.make_run("olga")
    site_writer.make_agent("aardvark", model="echo")
    site_writer.make_agent("zebra", model="echo")
    selected = '<option value="{}" selected>'
    assert selected.format("assistant") not in olga.get("/").content.decode()
    olga.post("/", {"agent": "zebra", "message": "Run"})
    site_writer.make_run("olga")  # through the REST API
    assert selected.format("zebra") in olga.get("/").content.decode()
    asked = olga.get("/?agent=aardvark").content.decode()
    assert selected.format("aardvark") in asked
    assert selected.format("zebra") not in asked


def test_the_history_is_searched_in_own_messages(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    sign_in("peter")
    runs = [
        site_writer.make_run("olga", "Draw a “graph” of 100% of Größe"),
        site_writer.make_run("olga", "Something else"),
        site_writer.make_run("peter", "Draw a graph"),
    ]
    answer = {"turn": 1, "role": MessageRole.ASSISTANT}
    text = '[{"type":"text","text":"A \\"pelican\\" flew"}]'
    Message.objects.create(run_id=runs[1], content=text, **answer)

    def found(query: str) -> list[str]:
        html = olga.get("/runs/", {"q": query}).content.decode()
        return [run for run in runs if f"/runs/{run}/" in html]

    assert found("graph") == runs[:1]
    assert found("Größe") == runs[:1]
    assert found("100%") == runs[:1]
    assert found('"pelican"') == runs[1:2]
    assert found("1_0%") == []
    assert found("nothing\0") == []
    html = olga.get("/runs/?agent=assistant").content.decode()
    assert all((f"/runs/{run}/" in html) == (run != runs[2]) for run in runs)
    assert "No matching runs" in olga.get("/runs/?agent=other").content.decode()


def test_usage_is_only_ones_own_even_with_view_all_runs(run: str, sign_in: SignIn) -> None:
    root = sign_in("root", superuser=True)
    own = site_writer.make_run("root")
    reply = {"turn": 1, "role": MessageRole.ASSISTANT, "content": "[]", "model": "m"}
    Message.objects.create(run_id=run, output_tokens=5_000, cost_microusd=9_000_000, **reply)
    Message.objects.create(run_id=own, output_tokens=1_234, cost_microusd=None, **reply)
    answer = root.get("/usage/?days=7")
    assert answer.context["total"].tokens == 1_234
    assert answer.context["total"].is_whole is False
    assert len(answer.context["by_day"]) == 7
    assert "at least $0.00" in answer.content.decode()
    assert root.get("/usage/?days=8000000").context["days"] == 30
    olga = sign_in("olga").get("/usage/")
    assert 'id="by-day"' in olga.content.decode()
    assert 'id="by-day"' not in sign_in("peter").get("/usage/").content.decode()
    assert olga.context["total"].dollars == 9
    assert olga.context["by_agent"][0]["name"] == "Assistant"


def test_colours_are_a_cookie_and_lead_nowhere_else(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    answer = olga.post("/theme/", {"theme": "dark", "back": "/runs/?q=x"})
    assert answer["Location"] == "/runs/?q=x"
    assert 'data-theme="dark"' in olga.get("/").content.decode()
    for back in (
        "https://evil.example/",
        "//evil.example",
        "javascript:alert(1)",
        "/\\evil.example",
    ):
        assert olga.post("/theme/", {"theme": "light", "back": back})["Location"] == "/"
    olga.cookies["vel_theme"] = '"><script>'
    assert "data-theme" not in olga.get("/").content.decode()
    olga.post("/theme/", {"theme": "system", "back": "/"})
    assert "data-theme" not in olga.get("/").content.decode()
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/theme/", {"theme": "dark"}).status_code == 403
