"""Grants in the admin, and rehearsal of a policy before it is saved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agents.models import Agent, ApprovalGrant
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db


def a_grant(by: User, **fields: Any) -> ApprovalGrant:
    agent = Agent.objects.filter(slug="coder").first() or rows.agent()
    values: dict[str, Any] = {
        "agent": agent,
        "tool": "execute",
        "condition": {"command": "git status"},
        "owner": by,
        "max_uses": 7,
        "uses": 2,
        "expires_at": timezone.now() + timedelta(days=1),
        "created_by": by,
        **fields,
    }
    return ApprovalGrant.objects.create(**values)


def test_the_list_and_the_page_show_the_allowed_calls() -> None:
    ada = rows.user()
    grant = a_grant(ada, tool="exe\u202ecute", reason="safe\u200b")
    client = client_of(rows.superuser())
    text = text_of(client.get(list_url(ApprovalGrant)))
    assert "git status" in text
    assert "2 of 7" in text
    page = client.get(page_url(grant))
    assert page.status_code == 200
    for hidden in ("\u202e", "\u200b"):
        assert hidden not in text_of(page)
    assert 'name="_save"' not in text_of(page)


def test_a_grant_is_revoked_by_an_action_once() -> None:
    grant = a_grant(rows.user())
    boss = rows.staff("boss", "approve_toolcall")
    client = client_of(boss)
    shown = messages_of(act(client, "revoke_selected", grant))
    assert any("revoked" in message for message in shown)
    grant.refresh_from_db()
    assert grant.revoked_by == boss
    assert any("not revoked" in text for text in messages_of(act(client, "revoke_selected", grant)))


def test_a_viewer_revokes_nothing() -> None:
    grant = a_grant(rows.user())
    viewer = rows.staff("viewer", "view_approvalgrant", "view_all_runs")
    act(client_of(viewer), "revoke_selected", grant)
    grant.refresh_from_db()
    assert grant.revoked_at is None
    blind = rows.staff("blind", "view_approvalgrant")
    assert "git status" not in text_of(client_of(blind).get(list_url(ApprovalGrant)))
    root = client_of(rows.superuser())
    for url in (page_url(grant), page_url(grant).replace("change", "delete")):
        assert root.post(url, {"uses": 0, "post": "yes"}).status_code == 403
    grant.refresh_from_db()
    assert grant.uses == 2


def rehearse_url(agent: Agent) -> str:
    return reverse("admin:agents_agent_rehearse", args=[agent.pk])


RULES = '[{"tool": "execute", "when": {"command": "rm"}, "action": "deny", "reason": "No."}]'


@pytest.mark.slow
def test_the_form_sends_its_unsaved_rules_and_the_page_shows_their_effect() -> None:
    agent = rows.agent()
    run = rows.run(rows.user())
    rows.call(run, 1, tool_input={"command": "rm -r \u202e<b>x</b>"})
    client = client_of(rows.superuser())
    assert rehearse_url(agent) in text_of(client.get(page_url(agent)))
    page = client.post(
        rehearse_url(agent),
        {"approval_rules": RULES, "interrupt_on": "", "rehearsal_days": "3", "name": "Other"},
    )
    text = text_of(page)
    assert "1 call, 1 would change" in text
    assert "rule 1" in text
    assert run.pk in text
    assert "\u202e" not in text
    assert "<b>x</b>" not in text
    agent.refresh_from_db()
    assert (agent.approval_rules, agent.version, agent.name) == ([], 1, "Coder")


def test_a_field_that_was_not_sent_stays_as_it_is_saved() -> None:
    agent = rows.agent(interrupt_on={"execute": True})
    rows.call(rows.run(rows.user()), 1)
    page = client_of(rows.superuser()).post(rehearse_url(agent), {"rehearsal_days": "3"})
    assert page.context["rehearsal"].tools["execute"].after["ask"] == 1
    assert page.context["rehearsal"].changed == 0
    assert "execute" in page.context["texts"]["interrupt_on"]


def test_an_emptied_field_is_tried_as_empty() -> None:
    agent = rows.agent(interrupt_on={"execute": True})
    rows.call(rows.run(rows.user()), 1)
    data = {"interrupt_on": "", "rehearsal_days": "3"}
    page = client_of(rows.superuser()).post(rehearse_url(agent), data)
    assert page.context["rehearsal"].tools["execute"].after["allow"] == 1
    assert page.context["texts"]["interrupt_on"] == ""


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"approval_rules": "{"}, "not JSON"),
        ({"approval_rules": '[{"tool": "x", "action": "go"}]'}, "approval_rules.0.action"),
        (
            {"approval_rules": '[{"tool":"x","when":{"command":"("},"action":"deny"}]'},
            "approval_rules.0.when.command",
        ),
        ({"interrupt_on": "[]"}, "interrupt_on"),
        ({"rehearsal_days": "0"}, "rehearsal_days"),
        ({"rehearsal_days": "x"}, "rehearsal_days"),
    ],
)
def test_invalid_rules_are_reported_and_the_typed_text_stays(
    data: dict[str, str], word: str
) -> None:
    agent = rows.agent()
    page = client_of(rows.superuser()).post(rehearse_url(agent), {"rehearsal_days": "3", **data})
    assert page.status_code == 200
    assert word in page.context["problem"]
    assert page.context["rehearsal"] is None
    for name, typed in data.items():
        if name in page.context["texts"]:
            assert page.context["texts"][name] == typed


def test_inputs_of_runs_that_one_may_not_read_are_not_shown() -> None:
    agent = rows.agent()
    rows.call(rows.run(rows.user()), 1, tool_input={"command": "rm secret-of-ada"})
    client = client_of(rows.staff("ed", "change_agent", "view_agent"))
    text = text_of(
        client.post(rehearse_url(agent), {"approval_rules": RULES, "rehearsal_days": "3"})
    )
    assert "1 would change" in text
    assert "1 more in runs that you do not have permission to read" in text
    assert "secret-of-ada" not in text


def test_it_needs_the_permission_to_change_the_agent() -> None:
    agent = rows.agent()
    viewer = client_of(rows.staff("viewer", "view_agent"))
    assert viewer.post(rehearse_url(agent), {"rehearsal_days": "3"}).status_code == 403
    assert rehearse_url(agent) not in text_of(viewer.get(page_url(agent)))
    stranger = client_of(rows.user("stranger"))
    assert stranger.post(rehearse_url(agent), {}).status_code == 302
    nothing = reverse("admin:agents_agent_rehearse", args=["nothing"])
    assert client_of(rows.superuser()).get(nothing).status_code == 404
