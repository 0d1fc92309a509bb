"""Required approvals and approvers in the agent's form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from agents.doors.agent_form.checks import at_its_field
from agents.models import Agent
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, messages_of, page_url, text_of
from tests.agents.admin.test_agents import ADD, form

pytestmark = pytest.mark.django_db

DENY = {"tool": "execute", "when": {"command": "rm .*"}, "action": "deny", "reason": "No."}
ASK = {"tool": "write_*", "when": {"path": "*.env"}, "action": "ask", "ask": {"expiry": 60}}


def errors_of(client: Any, **typed: Any) -> dict[str, list[str]]:
    response = client.post(reverse(ADD), form(**typed))
    assert response.status_code == 200
    assert not Agent.objects.exists()
    return {name: list(found) for name, found in response.context["adminform"].form.errors.items()}


def test_all_approval_settings_are_saved_with_a_version():
    group = Group.objects.create(name="leads")
    client = client_of(rows.superuser())

    client.post(
        reverse(ADD),
        form(
            interrupt_on='{"ls": true, "execute": {"approvals_needed": 2, "self_approval": false, '
            '"expiry": 600, "allowed_decisions": ["approve", "reject"]}}',
            approval_rules=json.dumps([DENY, ASK]),
            approvals_needed=2,
            self_approval="",
            approval_expiry=3600,
            approver_groups=[group.pk],
        ),
    )

    agent = Agent.objects.get()
    assert list(agent.approver_groups.all()) == [group]
    spec = agent.versions.get().spec
    assert spec["interrupt_on"]["execute"]["expiry"] == 600
    assert [rule["action"] for rule in spec["approval_rules"]] == ["deny", "ask"]
    assert (spec["approvals_needed"], spec["self_approval"]) == (2, False)
    assert spec["approval_expiry"] == 3600


@pytest.mark.slow
def test_the_versions_list_changes_without_unchanged_values():
    agent = rows.agent("helper", name="Helper")
    client = client_of(rows.superuser())

    client.post(page_url(agent), form(approval_rules=json.dumps([DENY]), approvals_needed=2))

    text = text_of(client.get(page_url(agent)))
    assert "approval_rules" in text
    assert "&quot;command&quot;: &quot;rm .*&quot;" in text
    assert "approvals_needed" in text
    # In the complete new version, not in the list of changes.
    assert text.count("larger_than&quot;") == 1


@pytest.mark.parametrize(
    ("field", "typed", "complaint"),
    [
        ("interrupt_on", {"execute": {"approvals_needed": 3}}, "approvals_needed of execute is 3"),
        ("interrupt_on", {"execute": {"approvals_needed": True}}, "give 1 or 2"),
        ("interrupt_on", {"execute": {"self_approval": 1}}, "must be true or false"),
        ("interrupt_on", {"execute": {"expiry": 0}}, "give whole seconds"),
        ("interrupt_on", {"execute": {"expiry": True}}, "give whole seconds"),
        ("interrupt_on", {"execute": {"expire": 5}}, "The rule of execute is"),
        ("interrupt_on", {"write_memory": False}, "write_memory: "),
        ("approval_rules", {}, "Give a list of rules"),
        ("approval_rules", [7], "rule 1: 7 is no object"),
        ("approval_rules", [DENY, {"tool": "ls"}], "rule 2: it lacks action."),
        ("approval_rules", [{**DENY, "then": 1}], "rule 1: there is no then in a rule"),
        ("approval_rules", [DENY, {**ASK, "action": "maybe"}], "rule 2, action: "),
        ("approval_rules", [DENY, DENY, {**DENY, "when": {"command": "("}}], "rule 3, when."),
        ("approval_rules", [{**ASK, "ask": {"expiry": 0}}], "rule 1, ask.expiry: "),
        ("approval_rules", [{**DENY, "when": {"port": 1}}], "rule 1, when.port: "),
    ],
)
def test_an_invalid_value_is_an_error_of_its_field_with_the_rule(field, typed, complaint):
    if typed == {}:
        typed = {"tool": "ls"}
    found = errors_of(client_of(rows.superuser()), **{field: json.dumps(typed)})
    assert list(found) == [field]
    assert complaint in found[field][0]


@pytest.mark.slow
def test_other_fields_have_their_bounds():
    client = client_of(rows.superuser())
    assert "approval_expiry" in errors_of(client, approval_expiry=0)
    assert "approvals_needed" in errors_of(client, approvals_needed=3)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("approval_rules.2.when.command: no.", ("approval_rules", "rule 3, when.command: no.")),
        ("approval_rules: no.", ("approval_rules", "no.")),
        ("interrupt_on.ls.expiry: no: really", ("interrupt_on", "ls, expiry: no: really")),
        ("thinking: no.", ("thinking", "no.")),
        ("Something else: no.", ("", "Something else: no.")),
        ("no place", ("", "no place")),
    ],
)
def test_messages_name_their_place(message, expected):
    assert at_its_field(message) == expected


@pytest.mark.slow
def test_without_the_permission_it_is_shown_and_not_changed():
    group = Group.objects.create(name="leads")
    agent = rows.agent(
        "helper",
        name="Helper",
        interrupt_on={"execute": True},
        approval_rules=[DENY],
        approvals_needed=2,
        self_approval=False,
    )
    agent.approver_groups.add(group)
    client = client_of(rows.staff("editor", "view_agent", "change_agent", "configure_sandbox"))

    page = text_of(client.get(page_url(agent)))
    client.post(
        page_url(agent),
        form(
            interrupt_on='{"execute": false}',
            approval_rules='[{"tool": "*", "action": "allow"}]',
            approver_groups=[],
            max_turns=7,
        ),
    )

    assert "leads" in page
    assert 'name="approval_rules"' not in page
    assert 'name="approver_groups"' not in page
    agent.refresh_from_db()
    assert agent.max_turns == 7
    assert agent.interrupt_on == {"execute": True}
    assert agent.approval_rules == [DENY]
    assert (agent.approvals_needed, agent.self_approval) == (2, False)
    assert list(agent.approver_groups.all()) == [group]


def test_with_the_permission_it_is_changed_and_the_sandbox_is_not():
    agent = rows.agent("helper", name="Helper", network="none")
    client = client_of(rows.staff("editor", "change_agent", "configure_approval"))

    client.post(page_url(agent), form(approvals_needed=2, network="full"))

    agent.refresh_from_db()
    assert (agent.approvals_needed, agent.network) == (2, "none")


@pytest.mark.parametrize("may", [False, True])
def test_a_duplicate_has_the_rules_that_its_maker_could_have_typed(may):
    group = Group.objects.create(name="leads")
    rule = {"tool": "execute", "action": "allow"}
    rules = {"approval_rules": [rule], "approvals_needed": 2, "guardrails": ["secrets"]}
    agent = rows.agent("helper", network="full", **rules)
    agent.approver_groups.add(group)
    extra = ["configure_approval"] if may else []
    client = client_of(rows.staff("editor", "add_agent", "view_agent", *extra))

    response = act(client, "duplicate_selected", agent)

    copy = Agent.objects.exclude(pk=agent.pk).get()
    assert copy.network == "none"
    assert (copy.approval_rules == [rule], copy.approvals_needed == 2) == (may, may)
    assert copy.approver_groups.exists() is may
    taken = "its sandbox." if may else "its sandbox, approval and Guardrails."
    assert f"The defaults were taken for {taken}" in messages_of(response)[0]
