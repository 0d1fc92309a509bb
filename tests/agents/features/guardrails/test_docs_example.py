"""The example of docs/guides/guardrails.md works as the page describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.test import override_settings

from agents.features.guardrails.options import RetryRule
from agents.features.guardrails.public import GuardContext
from agents.features.guardrails.registry import guardrails
from agents.models import StateFile, ToolCall
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_until,
)

PAGE = Path(__file__).resolve().parents[4] / "docs/guides/guardrails.md"


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the example as a module, registered as on the page."""
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n# company/guards.py\n(.*?)```", text, re.DOTALL)
    package = tmp_path / "srv" / "company"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "guards.py").write_text(code)
    monkeypatch.syspath_prepend(package.parent)
    (command,) = re.findall(r"VEL_GUARDRAILS=(\S+) VEL_HOOKS=(\S+) vel up", text)
    paths = {"GUARDRAILS": (command[0],), "HOOKS": (command[1],)}
    with override_settings(VEL={**django_settings.VEL, **paths}):
        yield tmp_path


@pytest.mark.django_db(transaction=True)
def test_the_example(company: Path, capfd: Any) -> None:
    assert not {"vel.E008", "vel.E012", "vel.E013"} & {error.id for error in run_checks()}
    user = make_user()
    model = script_file(
        company,
        [
            {"tool_calls": [{"name": "read_file", "input": {"path": "/customers"}}]},
            {"text": "It is CUST-123456."},
        ],
    )
    make_agent(user, model=model, guardrails=["no-customer-numbers"])
    run = start_run(user)
    StateFile.objects.create(thread=run.thread, path="/customers", content=b"CUST-654321 Ada")
    run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert "CUST-****** Ada" in ToolCall.objects.get(run=run).result
    assert events(run, "text.completed")[0]["text"] == "It is CUST-******."
    refused = drive_to_end(start_run(user, "Export all customers, please."))
    assert refused.error_code == "guardrail_input"
    call = ToolCall.objects.get(run=run).call_id
    said = ""

    def told() -> bool:
        nonlocal said
        said += capfd.readouterr().out
        return f"tester failed {refused.id}" in said

    wait_until(told, "the end of the second run in the log")
    assert f"tester read_file done {run.id}/{call}" in said
    assert f"tester completed {run.id}" in said


def test_outgoing_data_is_checked(company: Path) -> None:
    guardrail = guardrails()["no-customer-numbers"]
    given = {"text": "CUST-123456"}
    for leaves, action in ((True, "block"), (False, "allow")):
        context = GuardContext("run", "thread", 1, "agent", 1, leaves_machine=leaves)
        decision = guardrail.check_tool_call(context, "send", given)
        assert decision.action == action  # type: ignore[union-attr]


def test_the_example_of_retries_is_a_policy() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [RetryRule(**rule).attempts for rule in json.loads(text)] == [3, 2]
