"""An agent's network for the model, for the run, and for the person who configures it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.admin.agent_form import AgentForm
from agents.doors.agent_form.fields import option_form_fields
from agents.middleware.execution import connection_events, network_sentence, with_refusals
from agents.models import Agent, RunEvent, ToolCall
from agents.services.agent_definitions.actions import build_spec
from agents.services.errors import InvalidRequest
from sandbox.result import Connection, ExecutionResult
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

REFUSED = "[network: refused evil.test:80: not on the agent's allow-list]"


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("profile", ["full", "sandbox_only"])
def test_a_refused_connection_is_reported_to_the_model_and_logged(
    tmp_path: Path, profile: str
) -> None:
    user = make_user()
    tool = "execute" if profile == "full" else "execute_in_sandbox"
    call = {"name": tool, "input": {"command": "curl -sS http://evil.test/x"}}
    script = script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Done."}])
    fields = {"network": "allowlist", "allowed_hosts": ["pypi.org"], "profile": profile}
    make_agent(user, sandbox=True, model=script, **fields)
    run = drive_to_end(start_run(user))
    [made] = ToolCall.objects.filter(run=run)
    assert REFUSED in str(made.result_content)
    [event] = RunEvent.objects.filter(run=run, type="sandbox.connection")
    data: dict[str, Any] = json.loads(event.data) if isinstance(event.data, str) else event.data
    assert data == {
        "call_id": data["call_id"],
        "host": "evil.test",
        "port": 80,
        "allowed": False,
        "reason": "not on the agent's allow-list",
        "sent": 0,
        "received": 0,
        "count": 1,
    }
    assert data["call_id"]


def test_refusals_follow_the_output_and_are_limited() -> None:
    rows = [Connection(f"n{n}.test", 443, False, "no") for n in range(12)]
    result = with_refusals(ExecutionResult("", "last words", 0, connections=tuple(rows)))
    lines = result.stderr.splitlines()
    assert lines[:2] == ["last words", "[network: refused n0.test:443: no]"]
    assert lines[-1] == "[network: 2 more destinations were refused]"
    assert len(connection_events("1", result)) == 12
    allowed = ExecutionResult("", "", 0, connections=(Connection("a.test", 80, True, "allowed"),))
    assert with_refusals(allowed).stderr == ""


def agent(**fields: Any) -> Agent:
    return Agent(name="A", slug="a", provider="scripted", model="echo", **fields)


def test_the_prompt_names_the_allowed_hosts() -> None:
    assert network_sentence(build_spec(agent())) == "There is no network."
    listed = agent(network="allowlist", allowed_hosts=["pypi.org", "*.example.org"])
    assert "only these hosts" in network_sentence(build_spec(listed))
    assert "pypi.org, *.example.org." in network_sentence(build_spec(listed))
    assert network_sentence(build_spec(agent(network="allowlist"))) == "There is no network."
    assert "public internet" in network_sentence(build_spec(agent(network="full")))


@pytest.mark.parametrize("hosts", [["https://pypi.org"], ["*"], "pypi.org", [7], {"a.org": 1}])
def test_a_bad_list_is_refused_on_save(hosts: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^allowed_hosts: "):
        build_spec(agent(network="allowlist", allowed_hosts=hosts))


@pytest.mark.django_db
def test_the_form_names_the_wrong_entry_at_its_field() -> None:
    values = {"name": "A", "slug": "a", "allowed_hosts": '["pypi.org", "10.0.0.1/8"]'}
    fields = option_form_fields(Agent(), lambda name: True)
    form = type("WholeForm", (AgentForm,), fields)(
        {
            **values,
            "provider": "scripted",
            "model": "echo",
            "profile": "full",
            "skill_mode": "tool_result",
            "network": "allowlist",
            "max_output_tokens": 1000,
            "max_turns": 5,
            "max_concurrent_subagents": 5,
            "subagent_depth": 1,
            "output_repairs": 2,
            "approvals_needed": 1,
            "owner": make_user().pk,
            "version": 1,
        }
    )
    assert not form.is_valid()
    assert "10.0.0.1/8" in str(form.errors.get("allowed_hosts")), form.errors
