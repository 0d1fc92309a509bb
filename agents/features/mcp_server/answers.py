"""Results of tool calls: text for the model, and the same content as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.urls import NoReverseMatch, reverse

from agents.features.mcp_server.tools import CANCEL_RUN, GET_RUN, SPACE
from agents.hidden_text import visible
from agents.kernel.proposals import run_request_kinds
from agents.models import Message, MessageRole, Run
from agents.selectors.disk_space import waiting_for_space
from agents.selectors.family import descendants_of, goes_on_alone
from agents.settings import PageSettings
from agents.states import RunStatus, WaitReason
from agents.structured_output.schema import check_schema
from agents.structured_output.validation import problems_in

Result = dict[str, Any]
"""A tool's result in the protocol's format."""


def _person() -> dict[str, str]:
    """Return the reasons why a person must act, by `Run.wait_reason`."""
    about_runs = {kind.name: kind.why_waiting for kind in run_request_kinds().values()}
    return {WaitReason.APPROVAL: "a person must decide what the agent asks", **about_runs}


def waits_for_person(run: Run) -> str | None:
    """Return why the run and its delegated runs cannot continue before a person acts, or None."""
    if run.status != RunStatus.WAITING:
        return None
    family = [run, *descendants_of(run.pk)]
    if goes_on_alone(family):
        return None
    reasons = {member.wait_reason for member in family if not member.has_ended}
    return next((reason for reason in _person() if reason in reasons), None)


def answer_of(run: Run) -> Result:
    """Return the run's current state. Text of agents is without invisible characters."""
    data: dict[str, Any] = {
        "run": run.pk,
        "thread": run.thread_id,
        "status": run.status,
        "url": run_url(run),
    }
    says = _ended(run, data) if run.has_ended else _under_way(run, data)
    is_error = run.status in (RunStatus.FAILED, RunStatus.CANCELLED) or "error" in data
    about = f"Run {run.pk} ({run.status}) of thread {run.thread_id}: {data['url']}"
    return {
        "content": [{"type": "text", "text": says}, {"type": "text", "text": about}],
        "structuredContent": data,
        "isError": is_error,
    }


def refusal(message: str, code: str) -> Result:
    """Return the result of a call that was refused, with the reason."""
    text = visible(message)
    return {"content": [{"type": "text", "text": f"{text} ({code})"}], "isError": True}


def run_url(run: Run) -> str:
    """Return the URL of the run's page, or of the site in a project without Vel's pages."""
    try:
        path = reverse("web:run", args=[run.pk])
    except NoReverseMatch:
        path = "/"
    return PageSettings.now().PUBLIC_URL.rstrip("/") + path


def _under_way(run: Run, data: dict[str, Any]) -> str:
    reason = waits_for_person(run)
    later = f"Call {GET_RUN} with this run for its answer; {CANCEL_RUN} ends it."
    if space := waiting_for_space(run):
        data["waits_for"] = SPACE
        return f"{space} {later}"
    if reason is None:
        return f"It has not answered yet and goes on. {later}"
    data["waits_for"] = str(reason)
    return f"It waits: {_person()[reason]}, at {data['url']}. {later}"


def _ended(run: Run, data: dict[str, Any]) -> str:
    if run.status == RunStatus.CANCELLED:
        return "It was cancelled."
    if run.status == RunStatus.FAILED:
        message = visible(run.error_message)
        data["error"] = {"code": run.error_code, "message": message}
        return f"It failed: {message} ({run.error_code})"
    rows = Message.objects.filter(run=run, role=MessageRole.ASSISTANT).order_by("-turn")
    last = rows.first()
    data["answer"] = visible(last.text) if last is not None else ""
    schema = run.output_schema or run.spec.get("output_schema")
    if not schema:
        return data["answer"] or "It has ended without a word."
    return _structured(run, data, schema)


def _structured(run: Run, data: dict[str, Any], schema: Any) -> str:
    value = _each_text(run.structured_output, visible)
    schema = json.loads(schema) if isinstance(schema, str) else schema
    # Visible spelling can make the text too long, or different from each allowed value.
    if value != run.structured_output and problems_in(value, check_schema(schema)):
        message = "Its answer has invisible characters where its form does not allow to show them."
        data["error"] = {"code": "hidden_characters", "message": message}
        return f"{message} It is at {data['url']}."
    data["output"] = value
    return json.dumps(value, ensure_ascii=False)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _each_text(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return value
