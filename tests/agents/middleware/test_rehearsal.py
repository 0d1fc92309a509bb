"""Rehearsal of a changed policy with the calls of the last days."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.events.append import dump
from agents.middleware.rehearsal import rehearse, with_policy
from agents.models import Agent, Run, ToolCall
from agents.selectors.visible import runs_for
from agents.services.errors import InvalidRequest
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)


def made(run: Run, tool: str, position: int, effect: str = "write", **given: Any) -> ToolCall:
    return ToolCall.objects.create(
        run=run,
        turn=1,
        position=position,
        call_id=f"call_{position}",
        tool=tool,
        input=dump(given),
        effect=effect,
        status="succeeded",
    )


def an_agent(**fields: Any) -> tuple[User, Agent, Run]:
    user = make_user()
    agent = make_agent(user, sandbox=True, **fields)
    return user, agent, start_run(user)


def test_a_rehearsal_of_real_calls_lists_the_changes(tmp_path: Path) -> None:
    user = make_user()
    calls = [
        {"name": "write_file", "input": {"path": path, "content": "x"}} for path in ("/a", "/b/c")
    ]
    model = script_file(tmp_path, [{"tool_calls": calls}, {"text": "Done."}])
    agent = make_agent(user, model=model)
    run = drive_to_end(start_run(user))
    rules = [
        {"tool": "write_*", "when": {"path": "/b/**"}, "action": "deny", "reason": "No."},
        {"tool": "ls", "action": "ask"},
    ]
    found = rehearse(agent, with_policy(agent, {"approval_rules": rules}), days=7)
    counts = found.tools["write_file"]
    assert counts.before == {"allow": 2, "ask": 0, "deny": 0}
    assert counts.after == {"allow": 1, "ask": 0, "deny": 1}
    (example,) = found.examples
    assert (example.run_id, example.status, example.source) == (run.id, "succeeded", "rule 1")
    assert (example.before, example.after) == ("allow", "deny")
    assert '"/b/c"' in example.input
    assert (found.calls, found.changed, found.cut, found.left_out) == (2, 1, False, 0)


def test_nothing_is_changed_by_it() -> None:
    _, agent, run = an_agent()
    made(run, "write_file", 0, path="a", content="")
    before = (agent.version, list(ToolCall.objects.values()), list(Run.objects.values()))
    rehearse(agent, with_policy(agent, {"interrupt_on": {"write_file": True}}), days=1)
    agent.refresh_from_db()
    assert before == (agent.version, list(ToolCall.objects.values()), list(Run.objects.values()))
    assert agent.interrupt_on == {}


def test_an_edit_of_the_memory_counts_as_asking() -> None:
    _, agent, run = an_agent()
    made(run, "write_memory", 0, "read", path="knowledge/a.md", content="x", reason="y")
    spec = with_policy(agent, {"approval_rules": [{"tool": "*", "action": "allow"}]})
    found = rehearse(agent, spec, days=1)
    assert found.tools["write_memory"].after == {"allow": 0, "ask": 1, "deny": 0}
    assert found.changed == 0


def test_a_call_that_no_policy_saw_is_left_out() -> None:
    _, agent, run = an_agent()
    made(run, "write_file", 0, content="without a path")
    made(run, "gone_tool", 1, "external", x=1)
    found = rehearse(agent, with_policy(agent, {}), days=1)
    assert (found.left_out, found.calls) == (1, 1)
    assert found.tools["gone_tool"].after["ask"] == 1


def test_other_agents_and_older_runs_are_left_aside() -> None:
    user, agent, run = an_agent()
    made(run, "write_file", 0, path="a", content="")
    make_agent(user, slug="other")
    made(start_run(user, agent="other"), "write_file", 0, path="a", content="")
    spec = with_policy(agent, {"interrupt_on": {"write_file": True}})
    assert rehearse(agent, spec, days=3).calls == 1
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=4))
    assert rehearse(agent, spec, days=3).calls == 0


def test_examples_come_from_runs_that_the_person_may_read() -> None:
    _, agent, run = an_agent(everyone=True)
    bob = make_user("bob")
    made(run, "write_file", 0, path="a", content="secret of ada")
    made(start_run(bob), "write_file", 0, path="b", content="")
    spec = with_policy(agent, {"interrupt_on": {"write_file": True}})
    found = rehearse(agent, spec, days=1, readable=runs_for(bob))
    assert (found.changed, found.hidden) == (2, 1)
    assert "secret" not in repr(found)


def test_it_reports_further_calls_and_uses_the_newest() -> None:
    _, agent, run = an_agent()
    for position in range(5):
        made(run, "write_file", position, path=str(position), content="")
    spec = with_policy(agent, {"interrupt_on": {"write_file": True}})
    found = rehearse(agent, spec, days=1, limit=2)
    assert (found.cut, found.calls) == (True, 2)
    assert [example.call_id for example in found.examples] == ["call_4", "call_3"]
    assert not rehearse(agent, spec, days=1, limit=5).cut


@pytest.mark.slow
def test_a_rehearsal_reads_only_a_limited_part_of_long_inputs() -> None:
    _, agent, run = an_agent()
    for position in range(8):
        made(run, "write_file", position, path="/a", content="x" * 3_000_000)
    found = rehearse(agent, with_policy(agent, {}), days=1)
    assert (found.calls, found.cut) == (6, True)


@pytest.mark.parametrize("days", [0, 366])
def test_the_days_are_bounded(days: int) -> None:
    _, agent, _ = an_agent()
    with pytest.raises(InvalidRequest, match="days"):
        rehearse(agent, with_policy(agent, {}), days=days)


def test_a_policy_that_could_not_be_saved_is_refused() -> None:
    _, agent, _ = an_agent()
    bad = [{"tool": "execute", "when": {"command": "("}, "action": "deny"}]
    with pytest.raises(InvalidRequest, match=r"approval_rules\.0\.when\.command"):
        with_policy(agent, {"approval_rules": bad})


@pytest.mark.slow
def test_ten_thousand_calls_take_seconds() -> None:
    _, agent, run = an_agent()
    ToolCall.objects.bulk_create(
        ToolCall(
            run=run,
            turn=number,
            position=0,
            call_id=str(number),
            tool="execute",
            input=dump({"command": f"git log -{number} && make test-{number} | tail"}),
            effect="write",
            status="succeeded",
        )
        for number in range(10_000)
    )
    rules = [
        {"tool": "execute", "when": {"command": r"rm -rf|curl .*\| *sh"}, "action": "deny"},
        {"tool": "*", "when": {"host": "*.evil.example"}, "action": "deny"},
        {"tool": "*", "when": {"path": "**/.env"}, "action": "deny"},
        {"tool": "execute", "when": {"command": "git (log|status).*"}, "action": "allow"},
        {"tool": "execute", "action": "ask"},
    ]
    begun = time.process_time()
    found = rehearse(agent, with_policy(agent, {"approval_rules": rules}), days=1)
    took = time.process_time() - begun
    print(f"10,000 calls: {took:.2f} s")
    assert found.tools["execute"].after == {"allow": 0, "ask": 10_000, "deny": 0}
    assert len(found.examples) == 50
    assert took < 10  # about 2 s
