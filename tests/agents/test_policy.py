"""The order of a policy's rules, and the rules for edits of the memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.models import ApprovalRequest, ToolCall
from agents.policy import judge
from agents.spec import AgentSpec
from memory.models import MemoryFile
from memory.proposals import MEMORY_EDIT
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run


def spec(*rules: dict[str, Any], **fields: Any) -> AgentSpec:
    return AgentSpec(name="", slug="", provider="", model="", approval_rules=list(rules), **fields)


DENY = {"tool": "write_memory", "action": "deny"}
EDIT = {"path": "/memory/knowledge/a.md", "content": "x"}


def test_rules_come_before_interrupt_on_and_that_before_the_effect() -> None:
    asks = spec(interrupt_on={"execute": True, "fetch": False})
    assert judge(asks, "execute", "write", {}).source == "interrupt_on"
    assert judge(asks, "fetch", "external", {}).action == "allow"
    assert judge(asks, "send", "external", {}).action == "ask"
    assert judge(asks, "ls", "read", {}).action == "allow"
    ruled = spec({"tool": "exec*", "action": "allow"}, interrupt_on={"execute": True})
    verdict = judge(ruled, "execute", "write", {})
    assert (verdict.action, verdict.source) == ("allow", "rule 1")


def test_inputs_that_a_tool_ignores_prevent_allowing_and_not_denying() -> None:
    allow = spec({"tool": "*", "when": {"path": "a"}, "action": "allow"})
    reads = frozenset({"text"})
    given = {"text": "x", "path": "a"}
    assert judge(allow, "send", "external", given, reads=reads).action == "ask"
    deny = spec({"tool": "*", "when": {"path": "a"}, "action": "deny"})
    assert judge(deny, "send", "external", given, reads=reads).action == "deny"


@pytest.mark.parametrize("tool", ["write_memory", "write_file", "edit_file"])
@pytest.mark.parametrize("first", [None, {"tool": "*", "action": "allow"}])
def test_memory_can_be_denied_for_every_tool(tool: str, first: Any) -> None:
    rules = [rule for rule in (first, DENY) if rule]
    assert judge(spec(*rules), tool, "write", EDIT, proposes=MEMORY_EDIT).action == "deny"
    only = {**DENY, "when": {"path": "knowledge/**"}}
    assert judge(spec(only), tool, "write", EDIT, proposes=MEMORY_EDIT).action == "deny"
    other = {**DENY, "when": {"path": "skills/**"}}
    assert judge(spec(other), tool, "write", EDIT, proposes=MEMORY_EDIT).action == "ask"


def test_memory_always_asks_under_the_terms_of_its_rule() -> None:
    allowed = spec({"tool": "*", "action": "allow"}, interrupt_on={"write_file": False})
    assert judge(allowed, "write_file", "write", EDIT, proposes=MEMORY_EDIT).action == "ask"
    two = spec(interrupt_on={"write_memory": {"approvals_needed": 2}})
    assert (
        judge(two, "write_memory", "read", EDIT, proposes=MEMORY_EDIT).terms.approvals_needed == 2
    )
    assert judge(two, "write_file", "write", EDIT, proposes=MEMORY_EDIT).terms.approvals_needed == 2


@pytest.mark.django_db(transaction=True)
def test_a_denial_of_memory_holds_through_the_file_tools(tmp_path: Path) -> None:
    user = make_user()
    call = {"name": "write_file", "input": EDIT}
    model = script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Done."}])
    make_agent(user, model=model, approval_rules=[DENY])
    run = drive_to_end(start_run(user), until=("waiting", "completed"))
    assert (run.status, ToolCall.objects.get().status) == ("completed", "denied")
    assert not ApprovalRequest.objects.exists()
    assert not MemoryFile.objects.exists()


def test_calls_with_a_trial_always_ask_unless_denied() -> None:
    allow = {"tool": "*", "action": "allow"}
    for policy in (spec(allow), spec(interrupt_on={"execute_sql": False}), spec()):
        verdict = judge(policy, "execute_sql", "external", {}, tried=True)
        assert verdict.action == "ask"
        assert verdict.terms.allowed_decisions == ("approve", "reject")
    denied = spec({"tool": "execute_sql", "action": "deny"})
    assert judge(denied, "execute_sql", "external", {}, tried=True).action == "deny"
    only = {"tool": "*", "action": "ask", "ask": {"allowed_decisions": ["edit", "respond"]}}
    verdict = judge(spec(only), "execute_sql", "external", {}, tried=True)
    assert verdict.terms.allowed_decisions == ("reject",)
