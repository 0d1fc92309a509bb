"""Database errors in custom tools: only the loss of Vel's own database hands a run back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.db.utils import load_backend

from agents.engine import drive as drive_module
from agents.middleware.custom import calling
from agents.models import ToolCall
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from vel import ToolContext, tool

pytestmark = pytest.mark.django_db(transaction=True)


def query_a_server_that_does_not_listen() -> None:
    """Raise the `OperationalError` that Django raises for an unreachable server."""
    backend = load_backend("django.db.backends.postgresql").DatabaseWrapper
    nowhere = {"HOST": "127.0.0.1", "PORT": "1", "NAME": "x", "USER": "x", "OPTIONS": {}}
    backend({**connection.settings_dict, **nowhere}).ensure_connection()


@tool(effect="read")
def unreachable() -> str:
    """Query another database."""
    query_a_server_that_does_not_listen()
    return "unreachable"


@tool(effect="external")
def unreachable_in_a_transaction() -> str:
    """Query another database, in a transaction of Vel's."""
    query_a_server_that_does_not_listen()
    return "unreachable"


@tool(effect="read")
async def unreachable_from_a_coroutine() -> str:
    """Query another database."""
    raise InterfaceError("connection already closed")


@tool(effect="read")
def wrong_statement() -> str:
    """Send a wrong statement to Vel's own database: `OperationalError` on SQLite."""
    with connection.cursor() as cursor:
        cursor.execute("SELEC 1")
    return "unreachable"


@tool(effect="read")
def who(context: ToolContext) -> str:
    """Return the name of the user."""
    return str(context.user.username)


class BackendAway:
    """An authentication backend whose own database is away."""

    def has_perm(self, user: object, permission: str, target: object = None) -> bool:
        raise OperationalError("connection to server at 10.1.2.3 failed")


@tool(effect="read", permission="shop.view_order")
def restricted() -> str:
    """Return what only some may see."""
    return "unreachable"


TOOLS = (unreachable, unreachable_in_a_transaction, unreachable_from_a_coroutine, wrong_statement)


def calls_of(
    names: list[str], settings: Any, directory: Path, **fields: Any
) -> dict[str, ToolCall]:
    settings.VEL = {**settings.VEL, "TOOLS": [f"{__name__}.{name}" for name in names]}
    turn = {"tool_calls": [{"name": name, "input": {}} for name in names]}
    model = script_file(directory, [turn, {"text": "Done."}])
    user = make_user()
    make_agent(user, model=model, tools=names, interrupt_on=dict.fromkeys(names, False), **fields)
    run = drive_to_end(start_run(user))
    assert (run.status, run.error_message) == ("completed", "")
    return {call.tool: call for call in ToolCall.objects.filter(run=run)}


def test_an_error_of_another_database_is_the_result_of_the_tool(
    settings: Any, tmp_path: Path
) -> None:
    names = [one.name for one in TOOLS]
    calls = calls_of(names, settings, tmp_path)
    assert [call.is_error for call in calls.values()] == [True] * len(names)
    assert [call.attempt for call in calls.values()] == [1] * len(names)
    assert "unreachable failed: OperationalError: connection" in calls["unreachable"].result


def test_vels_own_database_lost_before_the_function_is_called(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = calling._asked
    asked: list[str] = []

    def fail_once(run_id: str, permission: str) -> Any:
        asked.append(run_id)
        if len(asked) == 1:
            raise OperationalError("terminating connection due to administrator command")
        return real(run_id, permission)

    monkeypatch.setattr(calling, "_asked", fail_once)
    call = calls_of(["who"], settings, tmp_path)["who"]
    assert (call.status, call.attempt, call.result) == ("succeeded", 2, '"ada"')


def test_a_failed_permission_check_is_reported_with_its_reason(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive_module, "MAX_LOST_DRIVERS", 2)
    monkeypatch.setattr(drive_module, "FAULT_PAUSE", 0.0)
    backends = [*settings.AUTHENTICATION_BACKENDS, f"{__name__}.BackendAway"]
    settings.AUTHENTICATION_BACKENDS = backends
    settings.VEL = {**settings.VEL, "TOOLS": [f"{__name__}.restricted"]}
    model = script_file(tmp_path, [{"tool_calls": [{"name": "restricted", "input": {}}]}])
    user = make_user()
    make_agent(user, model=model, tools=["restricted"], interrupt_on={"restricted": False})
    run = drive_to_end(start_run(user))
    reason = (
        "a database failed; Vel asked the authentication backends whether ada has the permission "
        "shop.view_order (OperationalError)"
    )
    told = run.events.filter(type="run.resumed").order_by("seq")
    assert [json.loads(event.data)["reason"] for event in told] == [reason] * 2
    assert (run.status, run.error_code) == ("failed", "workers_lost")
    assert run.error_message.endswith(f"The last time: {reason}.")
