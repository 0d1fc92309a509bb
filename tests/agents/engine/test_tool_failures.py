"""Tool errors for models contain no traceback of Vel and no directory of the host."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from django.db.utils import load_backend

import agents
from agents.custom.tool_spec import tool
from agents.features.databases.models import DatabaseConnection
from agents.middleware.registry import built_in_tools
from agents.models import Agent, ApprovalRequest, Run, ToolCall
from agents.providers.base import ProviderError
from agents.providers.registry import get_provider
from agents.providers.scripted import ScriptedProvider
from agents.providers.scripts.base import Message, ScriptTurn, is_request, text_of
from agents.secret_text import SecretText
from agents.services.files import workspaces
from agents.settings import DataSettings
from agents.states import ENDED_RUNS
from sandbox.policy import Limits
from tests.agents.engine.test_tool_effects import World, declarations, world
from tests.agents.engine.tool_examples import AGENT, DAY, EVENT, EXAMPLES, LETTER
from tests.support.runs import drive_to_end, start_run

__all__ = ["world"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]

NOWHERE = "http://127.0.0.1:1/"
"""No server listens on this port."""
CHILD, CHILD_WITHOUT_MODEL = "Break down", "Ask a broken model"
ID = "{id}"
"""A placeholder in inputs for the id of the subagent that the earlier calls have started."""
RAISE = ("raise_with_directories", "raise_from_another_database")
ANSWERS = frozenset({"execute", "execute_python", "execute_in_sandbox"})
"""A failed command is a normal result. Its traceback is from the agent's own program."""
REPORTS = frozenset({"parallel_tasks", "spawn_parallel", "wait_subagent", "cancel_subagent"})
"""A failed child is part of their result, which is not an error."""
CANNOT_FAIL = {
    "read_todos": "it has no input, and reads only rows of its thread",
    "list_agent_parts": "it has no input, and reads only Vel's own tables",
    "list_skills": "a query without a match is an answer",
    "search_transcript": "a query without a match is an answer",
}
"""Tools without a failing call below, except for wrong input, with reasons."""


@dataclass(frozen=True)
class Fault:
    """`calls` that must fail after `prepare` has made the fault."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    prepare: Callable[[World, Any, pytest.MonkeyPatch], None] = lambda world, settings, patch: None
    before: tuple[tuple[str, dict[str, Any]], ...] = ()
    profile: str = "full"
    more_tools: tuple[str, ...] = field(default=())


def of(*names: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the calls of the examples, which succeed without faults."""
    return tuple(
        (one.tool, json.loads(json.dumps(one.given)))
        for one in EXAMPLES.values()
        if one.tool in names and not callable(one.given)
    )


def revoke_tokens(world: World, settings: Any, patch: pytest.MonkeyPatch) -> None:
    world.slack.tokens.clear()
    world.google.grants.clear()


def take_servers_away(world: World, settings: Any, patch: pytest.MonkeyPatch) -> None:
    google = dict.fromkeys(world.google.settings, NOWHERE)
    settings.VEL = {**settings.VEL, **google, "SLACK_URL": NOWHERE}
    (world.place / "shop.db").unlink()
    address = "postgresql://ada:secret@127.0.0.1:1/shop"
    DatabaseConnection.objects.filter(pk=world.database.pk).update(url=SecretText.seal(address))


def fill_the_quota(world: World, settings: Any, patch: pytest.MonkeyPatch) -> None:
    def small() -> Limits:
        return replace(Limits(), disk=1_000_000)

    patch.setattr(workspaces, "sandbox_limits", small)


def offer_custom_tools(world: World, settings: Any, patch: pytest.MonkeyPatch) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": [f"{__name__}.{name}" for name in RAISE]}


@tool(effect="read")
def raise_with_directories() -> str:
    """Raise an error that reveals much of the host."""
    vel = DataSettings.now()
    raise RuntimeError(f'Traceback (most recent call last):\n  File "{vel.DATA_DIR}/x.py"\nNo')


@tool(effect="read")
def raise_from_another_database() -> str:
    """Raise what Django raises if the server of a database does not listen."""
    backend = load_backend("django.db.backends.postgresql").DatabaseWrapper
    nowhere = {"HOST": "127.0.0.1", "PORT": "1", "NAME": "x", "USER": "x", "OPTIONS": {}}
    more = {"CONN_HEALTH_CHECKS": False, "CONN_MAX_AGE": 0, "TIME_ZONE": None, "PASSWORD": ""}
    backend({**nowhere, **more, "AUTOCOMMIT": True, "ATOMIC_REQUESTS": False}).ensure_connection()
    return "connected"


SERVERS = of(
    *("list_slack_channels", "list_gmail_messages", "list_gmail_labels", "list_calendars"),
    *("list_calendar_events", "read_calendar_event", "find_busy_times", "create_gmail_draft"),
    *("send_gmail_message", "send_slack_message", "create_calendar_event"),
)
FAULTS = {
    "nothing there": Fault(
        (
            ("ls", {"path": "missing"}),
            ("glob", {"pattern": "*", "path": "missing"}),
            ("grep", {"pattern": "a", "path": "missing"}),
            ("grep", {"pattern": "("}),
            ("read_file", {"path": "missing.txt"}),
            ("read_file", {"path": "/sandbox/user_uploads/lost.pdf"}),
            ("edit_file", {"path": "missing.txt", "old_text": "a", "new_text": "b"}),
            ("write_file", {"path": "/etc/x", "content": "a"}),
            # A directory instead of a file.
            ("read_file", {"path": "."}),
            ("write_file", {"path": ".", "content": "a"}),
            ("edit_file", {"path": ".", "old_text": "a", "new_text": "b"}),
            ("execute", {"command": "cat missing; ls -d $HOME; exit 3"}),
            ("execute_python", {"code": "1 / 0"}),
            ("write_todos", {}),
            ("load_skill", {"name": "missing"}),
            ("deactivate_skill", {"name": "missing"}),
            ("write_memory", {"path": "../x", "content": "a", "reason": "b"}),
            ("read_memory", {"path": "missing.md"}),
            ("list_memory", {"directory": "missing"}),
            ("task", {"subagent": "missing", "task": "x"}),
            ("parallel_tasks", {"tasks": [{"subagent": "missing", "task": "x"}]}),
            ("spawn_subagent", {"agent": "missing", "task": "x"}),
            ("spawn_parallel", {"tasks": [{"agent": "missing", "task": "x"}]}),
            ("wait_subagent", {"id": "missing"}),
            ("cancel_subagent", {"id": "missing"}),
            ("execute_sql", {"query": "SELEC 1"}),
            ("execute_sql", {"query": "SELECT * FROM missing"}),
            ("execute_sql", {"query": "UPDATE missing SET a = 1"}),
            ("execute_sql", {"query": "ATTACH 'x.db' AS x"}),
            ("get_schema", {"database": "missing"}),
            ("list_tables", {"database": "missing"}),
            ("describe_table", {"table": "missing"}),
            ("send_slack_message", {"channel_id": "C999999999", "text": "x"}),
            ("read_gmail_message", {"message_id": "missing"}),
            ("read_gmail_thread", {"thread_id": "missing"}),
            ("save_gmail_attachment", {"message_id": "missing", "part": "1", "path": "a"}),
            ("create_gmail_draft", {**LETTER, "attachments": ["missing.pdf"]}),
            ("send_gmail_message", {**LETTER, "attachments": ["missing.pdf"]}),
            ("change_gmail_labels", {"message_ids": ["missing"], "remove": ["UNREAD"]}),
            ("trash_gmail_messages", {"message_ids": ["missing"]}),
            ("list_calendar_events", {**DAY, "calendar_id": "missing"}),
            ("read_calendar_event", {"event_id": "missing"}),
            ("find_busy_times", {"start": "x", "end": "y"}),
            ("create_calendar_event", {"start": "x", "end": "y", "summary": "Planning"}),
            ("update_calendar_event", {**EVENT, "etag": '"9"', "summary": "New"}),
            ("delete_calendar_event", {"event_id": "missing", "etag": '"1"'}),
            ("respond_to_calendar_event", {"event_id": "missing", "response": "accepted"}),
            ("check_agent", {"definition": "name: ["}),
            ("create_agent", {"definition": f"{AGENT['definition']}unknown: 1\n"}),
        )
    ),
    "sandbox only": Fault(
        (("execute_in_sandbox", {"command": "cat missing; exit 3"}), ("task", {"task": CHILD})),
        profile="sandbox_only",
    ),
    "tokens revoked": Fault(SERVERS, revoke_tokens),
    "servers unreachable": Fault(
        (
            *SERVERS,
            *of("execute_sql", "get_schema", "list_tables", "describe_table"),
        ),
        take_servers_away,
    ),
    "quota full": Fault(
        (("write_file", {"path": "a.txt", "content": "x" * 1_200_000}),), fill_the_quota
    ),
    "children that fail": Fault(
        (
            ("task", {"task": CHILD}),
            ("task", {"task": CHILD_WITHOUT_MODEL}),
            ("parallel_tasks", {"tasks": [{"task": CHILD}, {"task": CHILD_WITHOUT_MODEL}]}),
            ("wait_subagent", {"id": ID}),
        ),
        before=(("spawn_subagent", {"task": CHILD_WITHOUT_MODEL}),),
    ),
    "custom tools": Fault(
        tuple((name, {}) for name in RAISE), offer_custom_tools, more_tools=("*", *RAISE)
    ),
}


def wrong_inputs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return wrong inputs for each tool: a wrong type for each field, and missing fields."""
    for name, declared in declarations().items():
        if name in ("forget_todos", "execute_in_sandbox", "search_transcript"):
            continue  # the agent of this test does not have them
        schema = declared.input_model.model_json_schema()
        if properties := schema.get("properties"):
            yield name, dict.fromkeys(properties, 1.5) | {next(iter(properties)): [{}]}
        if schema.get("required"):
            yield name, {}


FAULTS["wrong inputs"] = Fault(tuple(wrong_inputs()))


def play(fault: Fault, world: World, patch: pytest.MonkeyPatch) -> list[ToolCall]:
    """Play the calls, and return their stored rows."""
    turns = [calls for calls in (fault.before, fault.calls) if calls]

    def script(messages: list[Message]) -> ScriptTurn:
        start = max(place for place, one in enumerate(messages) if is_request(one))
        if (asked := text_of(messages[start])).endswith(CHILD):
            raise RuntimeError(f"No such file: {DataSettings.now().DATA_DIR}/x, {agents.__file__}")
        if asked.endswith(CHILD_WITHOUT_MODEL):
            raise ProviderError(f"{DataSettings.now().DATA_DIR}/x is no file", code="not_found")
        played = sum(one["role"] == "assistant" for one in messages[start:])
        if played == len(turns):
            return ScriptTurn("Done.")
        filled = json.dumps(turns[played])
        if played:
            started = json.loads(str(messages[-1]["content"][0]["content"]))
            filled = filled.replace(ID, started["id"])
        return ScriptTurn("", [(name, given) for name, given in json.loads(filled)])

    provider = get_provider("scripted")
    assert isinstance(provider, ScriptedProvider)
    patch.setitem(provider.scripts, "examples", script)
    Agent.objects.all().delete()
    names = [*built_in_tools(), *fault.more_tools]
    # An edit of the memory always requires approval.
    never = dict.fromkeys(set(names) - {"*", "write_memory"}, False)
    more = {"tools": list(fault.more_tools)} if fault.more_tools else {}
    world.make_agent(fault.profile, interrupt_on=never, **more)
    run = start_run(world.user, "Begin", agent=fault.profile.replace("_", "-"))
    run = drive_family(run, world)
    assert run.status == "completed", run.error_message
    found = ToolCall.objects.filter(run=run, turn=len(turns)).order_by("position")
    assert found.count() == len(fault.calls)
    return list(found)


def drive_family(run: Run, world: World) -> Run:
    """Drive a run and its subagents to their end, and approve all requests."""
    run = drive_to_end(run, until=("waiting", *ENDED_RUNS))
    while run.status == "waiting":
        children = Run.objects.filter(parent=run).exclude(status__in=ENDED_RUNS)
        requests = ApprovalRequest.objects.filter(run=run, status="pending")
        assert children or requests, "the run waits for nothing"
        for child in list(children):
            drive_to_end(child)
        for request in list(requests):
            world.approve(request)
        run = drive_to_end(run, until=("waiting", *ENDED_RUNS))
    return run


def problem_of(call: ToolCall, place: Path) -> str:
    """Return the fault in the result, or an empty string."""
    host = {
        str(DataSettings.now().DATA_DIR),
        str(Path(agents.__file__).parents[1]),
        sysconfig.get_path("purelib"),
        str(Path.home()),
        str(place),
    }
    if call.tool not in ANSWERS:
        host |= {"Traceback", 'File \\"'}
    found = sorted(text for text in host if text in call.result)
    is_right = call.is_error or call.tool in ANSWERS | REPORTS
    if is_right and call.result.strip('" ') and not found:
        return ""
    return f"{call.tool} {call.input[:200]}: is_error={call.is_error} {found} {call.result[:500]}"


def test_every_tool_has_a_failing_call() -> None:
    failing = {
        name for kind, fault in FAULTS.items() if kind != "wrong inputs" for name, _ in fault.calls
    }
    assert failing - set(RAISE) | set(CANNOT_FAIL) == set(built_in_tools())
    assert failing & set(CANNOT_FAIL) == set()


@pytest.mark.parametrize("kind", FAULTS)
def test_failures_reveal_nothing_about_the_host_to_the_model(
    kind: str, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[kind].prepare(world, settings, monkeypatch)
    calls = play(FAULTS[kind], world, monkeypatch)
    problems = [found for call in calls if (found := problem_of(call, world.place))]
    assert "\n".join(problems) == ""
