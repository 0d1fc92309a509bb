"""`vel grants` and `vel policy`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.doors.cli.errors import CliError
from agents.features.approvals.cli.policy import read_policy
from tests.agents.api.rows import make_agent
from tests.velproject.command import Vel, say
from tests.velproject.in_process import call

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


def asked(vel: Vel) -> str:
    """Create a run that waits, and return the ID of its approval request."""
    flags = vel.script(say("", WRITE), say("Done."))
    done = vel(*flags, "--approve", "write_file", "write a note")
    assert done.returncode == 3, done.stderr
    (request,) = vel.requests()
    return str(request["id"])


def rules_file(vel: Vel, content: Any) -> Path:
    path = vel.data / "rules.json"
    path.write_text(json.dumps(content))
    return path


def slug_of(vel: Vel) -> str:
    return str(vel.value("SELECT slug FROM agents_agent WHERE slug LIKE 'cli-%'"))


@pytest.mark.slow
def test_a_grant_is_listed_lets_calls_run_and_is_revoked(vel: Vel) -> None:
    request = asked(vel)
    done = vel("approvals", "approve", request, "--yes", "--always", "input", "--days", "2")
    assert done.returncode == 0, done.stderr
    (grant,) = vel.rows("grants", "list")
    assert (grant["tool"], grant["state"], grant["max_uses"]) == ("write_file", "good", 100)
    flags = vel.script(say("", WRITE), say("Done."))
    assert vel(*flags, "--approve", "write_file", "again").returncode == 0
    shown = vel("grants", "list").stdout
    assert grant["id"] in shown
    assert "1/100" in shown
    assert vel("grants", "revoke", grant["id"][:14]).returncode == 0
    assert vel.rows("grants", "list", "--all")[0]["state"] == "revoked"
    again = vel("grants", "revoke", grant["id"])
    assert (again.returncode, "already" in again.stderr) == (2, True)


@pytest.mark.slow
def test_a_policy_is_shown_and_rehearsed_and_stays_as_it_is(vel: Vel) -> None:
    asked(vel)
    slug = slug_of(vel)
    (shown,) = vel.rows("policy", "show", slug)
    assert shown["interrupt_on"] == {"write_file": True}
    assert "write_memory" in vel("policy", "show", slug).stdout
    rules = rules_file(vel, [{"tool": "write_*", "when": {"path": "*.txt"}, "action": "deny"}])
    (found,) = vel.rows("policy", "rehearse", slug, "--rules", str(rules))
    assert found["tools"]["write_file"]["before"] == {"allow": 0, "ask": 1, "deny": 0}
    assert found["tools"]["write_file"]["after"] == {"allow": 0, "ask": 0, "deny": 1}
    table = vel("policy", "rehearse", slug, "--rules", str(rules), "--days", "1")
    assert "0 → 1" in table.stdout
    assert "rule 1" in table.stdout
    assert "1 would change" in table.stderr
    bad = [{"tool": "execute", "when": {"command": "("}, "action": "deny"}]
    refused = vel("policy", "rehearse", slug, "--rules", str(rules_file(vel, bad)))
    assert refused.returncode == 2
    assert "approval_rules.0.when.command" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.django_db(transaction=True)
def test_an_agent_is_named_by_its_slug_or_the_start_of_its_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agent = make_agent(sandbox=False)
    for name in (agent.slug, agent.pk[:20]):
        assert call("policy", "show", "--json", name) == 0
    with pytest.raises(CliError, match="no agent 'nobody'"):
        call("policy", "show", "nobody")
    by_slug, by_id = capsys.readouterr().out.splitlines()
    assert json.loads(by_slug) == json.loads(by_id)


@pytest.mark.parametrize("content", ["{", '{"rules": []}', "{}", "[" * 100_000, "7", '"x"'])
def test_a_file_that_holds_no_policy_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rules.json"
    path.write_text(content)
    with pytest.raises(CliError, match=r"rules\.json"):
        read_policy(path)
