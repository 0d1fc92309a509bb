"""Invalid policies are refused when an agent is saved."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent
from agents.services.errors import InvalidRequest
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db


def rule(**fields: Any) -> dict[str, Any]:
    return {"tool": "execute", "action": "allow", **fields}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"approval_rules": [rule(when={"command": "("})]}, "approval_rules.0.when.command"),
        (
            {"approval_rules": [rule(), rule(when={"command": r"(a)\1"})]},
            "approval_rules.1.when.command",
        ),
        ({"approval_rules": [rule(when={"path": "../x"})]}, "approval_rules.0.when.path"),
        ({"approval_rules": [rule(when={"host": "a b"})]}, "approval_rules.0.when.host"),
        ({"approval_rules": [rule(when={"input_sha256": "x"})]}, "approval_rules.0.when.input"),
        ({"approval_rules": [rule(when={"larger_than": -1})]}, "approval_rules.0.when.larger"),
        ({"approval_rules": [rule(when={"comand": "x"})]}, "approval_rules.0.when.comand"),
        ({"approval_rules": [rule(wen={})]}, "approval_rules.0.wen"),
        ({"approval_rules": [rule(action="permit")]}, "approval_rules.0.action"),
        ({"approval_rules": [{"tool": "execute"}]}, "approval_rules.0.action"),
        ({"approval_rules": [rule(tool="write_memory")]}, "approval_rules.0.action"),
        ({"approval_rules": [rule(tool="write_mem*")]}, "approval_rules.0.action"),
        ({"approval_rules": [rule(ask={"expiry": 9})]}, "approval_rules.0.ask"),
        ({"interrupt_on": {"write_memory": False}}, "interrupt_on.write_memory"),
        ({"interrupt_on": {"execute": {"allowed_decisions": []}}}, "interrupt_on.execute.allowed"),
        (
            {"approvals_needed": 2, "interrupt_on": {"execute": {"allowed_decisions": ["edit"]}}},
            "interrupt_on.execute.allowed",
        ),
        (
            {
                "approval_rules": [
                    rule(
                        action="ask",
                        ask={"approvals_needed": 2, "allowed_decisions": ["edit", "reject"]},
                    )
                ]
            },
            "approval_rules.0.ask.allowed",
        ),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_by_its_place(
    fields: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        make_agent(make_user(), **fields)
    assert refused.value.message.startswith(place)
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"approval_rules": [rule(tool="*")]},
        {"approval_rules": [rule(tool="write_*")]},
        {"approval_rules": [rule(tool="write_memory", action="deny")]},
        {"approval_rules": [rule(tool="write_memory", action="ask", ask={"approvals_needed": 2})]},
        {"approval_rules": [rule(when={"larger_than": 100, "command": "git .*"})]},
        {"interrupt_on": {"write_memory": True}},
        {"approvals_needed": 2, "interrupt_on": {"execute": {"allowed_decisions": ["reject"]}}},
    ],
)
def test_a_policy_that_fits_is_kept(fields: dict[str, Any]) -> None:
    agent = make_agent(make_user(), **fields)
    spec = agent.versions.get().spec
    for name, value in fields.items():
        if name == "approval_rules":
            assert spec[name][0]["tool"] == value[0]["tool"]
