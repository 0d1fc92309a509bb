"""The declared effects of tools: call every tool and compare the changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.custom.tool_spec import tool
from agents.features.databases.models import DatabaseConnection
from agents.features.google_workspace.actions import save_google_key
from agents.features.planning.models import Todo
from agents.features.slack.actions import save_slack_token
from agents.middleware.base import Tool
from agents.middleware.registry import built_in_tools, toolset_for
from agents.models import (
    Agent,
    ApprovalRequest,
    Compaction,
    Effect,
    Run,
    ToolCall,
)
from agents.providers.registry import get_provider
from agents.providers.scripted import ScriptedProvider
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.spec import AgentSpec
from agents.states import ENDED_RUNS
from tests.agents.engine import tool_examples
from tests.agents.engine.tool_examples import EXAMPLES, Example, plays
from tests.agents.features.google_workspace.story import letter
from tests.sandbox.places import reachable_directory
from tests.support.changes import BY_ENGINE, changes, current_state
from tests.support.google_workspace_server import GoogleServer, authorized_user, google_server
from tests.support.runs import drive_to_end, make_agent, make_user, start_run
from tests.support.skills import write_skill
from tests.support.slack_server import TOKEN, SlackServer, slack_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]

STARTS_RUNS = BY_ENGINE
OWN_ROWS: dict[str, frozenset[str]] = {
    # It stores the content that the agent has seen. Only calls that write read this, and they run
    # alone.
    "read_file": frozenset({"agents.SeenFile"}),
    # The edit follows the decision of a person, not the call.
    "write_memory": frozenset(
        {f"memory.Memory{name}" for name in ("File", "Revision", "EditRequest")}
    ),
    # Separate runs that no other call of the turn can name.
    **dict.fromkeys(("task", "parallel_tasks", "spawn_subagent", "spawn_parallel"), STARTS_RUNS),
}
"""Changes that tools may make in parallel with other calls, and the reasons."""


class World:
    """An agent with every tool, and all data that its tools can change."""

    def __init__(self, place: Path, google: GoogleServer, slack: SlackServer) -> None:
        self.place, self.google, self.slack = place, google, slack
        self.user: User = make_user(is_superuser=True)
        save_slack_token(TOKEN, by=self.user)
        save_google_key(authorized_user(), by=self.user)
        mail = letter()
        mail.add_attachment(b"%PDF-1.7\n", maintype="application", subtype="pdf", filename="a.pdf")
        self.mail = google.mail.receive(mail)
        for number in (1, 2, 3):
            times = {"start": _at(9), "end": _at(10)}
            guest = {"email": "ada@example.com", "self": True, "responseStatus": "needsAction"}
            google.calendar.invite(f"meeting{number}", summary="M", attendees=[guest], **times)
        with closing(sqlite3.connect(place / "shop.db")) as database, database:
            database.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, amount INT)")
            database.execute("INSERT INTO sales VALUES (1, 42)")
        url = SecretText.seal(f"sqlite:///{place}/shop.db")
        self.database = DatabaseConnection.objects.create(name="shop", url=url, allow_writes=True)
        self.skills = write_skill(place / "skills").parent
        for profile in ("full", "sandbox_only"):
            self.make_agent(profile)

    def make_agent(self, profile: str, **fields: Any) -> Agent:
        names = {example.tool for example in EXAMPLES.values() if example.profile == profile}
        whole: dict[str, Any] = {
            "integrations": ["slack", "gmail", "calendar", "agents"],
            "background_subagents": True,
        }
        agent = make_agent(
            self.user,
            name=profile,
            slug=profile.replace("_", "-"),
            profile=profile,
            model="examples",
            sandbox=True,
            **(whole if profile == "full" else {}),
            **{"interrupt_on": dict.fromkeys(names, True), **fields},
        )
        if profile != "full":
            return agent
        return save_agent(agent, related={"databases": [self.database]})

    def state(self) -> Any:
        mail, calendar = self.google.mail, self.google.calendar
        return current_state(
            mail=(mail.messages, mail.drafts, mail.labels, mail.sent),
            calendar=(calendar.events, calendar.notified),
            slack=self.slack.sent,
            shop=(self.place / "shop.db").read_bytes(),
        )

    def play(self, message: str, example: Example) -> tuple[ToolCall, set[str]]:
        """Call the tool of an example; return the call and its changes."""
        run = self.begin(message, example)
        while (request := _waiting(run)).tool != example.tool:
            self.approve(request)
            drive_to_end(run, until=("waiting",))
            for child in Run.objects.filter(parent=run):
                drive_to_end(child, until=("waiting", "completed"))
        # Subagents of earlier examples must end first.
        left = Run.objects.filter(parent__status="completed").exclude(status__in=ENDED_RUNS)
        for child in left:
            drive_to_end(child)
        before = self.state()
        self.approve(request)
        run = drive_to_end(run, until=("completed", "failed"))
        assert run.status == "completed", (message, run.error_message)
        found = changes(before, self.state(), run_id=run.pk, thread_id=run.thread_id)
        return ToolCall.objects.get(run=run, tool=example.tool), found

    def begin(self, message: str, example: Example) -> Run:
        agent = example.profile.replace("_", "-")
        more: dict[str, Any] = {"agent": agent, "skill_directories": (str(self.skills),)}
        if example.shortened:
            earlier = drive_to_end(start_run(self.user, f"… {tool_examples.CHILD}", **more))
            more["thread"] = earlier.thread_id
            Compaction.objects.create(
                thread=earlier.thread,
                run=earlier,
                number=1,
                until_run=1,
                until_turn=1,
                kept_bytes=1000,
                by="clipping",
                tokens_before=2,
                tokens_after=1,
            )
        return drive_to_end(start_run(self.user, message, **more), until=("waiting", "failed"))

    def approve(self, request: ApprovalRequest) -> None:
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=self.user)

    def problem(self, message: str, example: Example, declared: Tool[Any]) -> str:
        """Return the error in a tool's declaration, or an empty string."""
        call, found = self.play(message, example)
        if call.status != "succeeded" or call.is_error:
            return f"the example failed: {call.result}"
        if call.effect != Effect.READ:
            return "" if found else f"it is declared as {call.effect} and changed nothing"
        own = OWN_ROWS.get(example.tool, frozenset())
        if own and not found:
            return "it changed nothing: remove it from OWN_ROWS"
        if declared.runs_alone or found <= own:
            return ""
        return (
            f"it is declared as a read that runs beside others, and changed {sorted(found - own)}"
        )


def _at(hour: int) -> dict[str, str]:
    return {"dateTime": f"2026-11-23T{hour:02}:00:00+01:00"}


def _waiting(run: Run) -> ApprovalRequest:
    assert run.status == "waiting", (run.status, run.error_message)
    return ApprovalRequest.objects.filter(run=run, status="pending").order_by("pk")[0]


@pytest.fixture
def world(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with google_server() as google, slack_server() as slack, reachable_directory() as data:
        settings.VEL = {
            **settings.VEL,
            **google.settings,
            # Without the files of other tests.
            "DATA_DIR": data,
            "SLACK_URL": slack.url,
            "TOOLS": [f"{__name__}.forget_todos"],
        }
        world = World(tmp_path, google, slack)
        provider = get_provider("scripted")
        assert isinstance(provider, ScriptedProvider)
        monkeypatch.setitem(provider.scripts, "examples", plays(world.mail))
        yield world


@tool(effect="read")
def forget_todos() -> str:
    """Say that nothing changes, and delete rows."""
    return f"{Todo.objects.all().delete()[0]}"


def declarations() -> dict[str, Tool[Any]]:
    """Return Vel's tools by name, for an agent that has all of them."""
    found: dict[str, Tool[Any]] = {}
    for profile in ("full", "sandbox_only"):
        spec = AgentSpec(
            name="",
            slug="",
            provider="",
            model="",
            profile=profile,
            databases=("shop",),
            writable_databases=("shop",),
            integrations=("slack", "gmail", "calendar", "agents"),
            background_subagents=True,
            tools=("*", "forget_todos"),
        )
        found = {**toolset_for(spec, has_left_out=True).tools, **found}
    return found


def test_every_tool_has_an_example() -> None:
    assert {example.tool for example in EXAMPLES.values()} == set(built_in_tools())


def test_tools_change_only_the_rows_that_they_declare(world: World) -> None:
    tools = declarations()
    found = {
        message: problem
        for message, example in EXAMPLES.items()
        if (problem := world.problem(message, example, tools[example.tool]))
    }
    assert found == {}


def test_a_tool_that_hides_a_change_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    example = Example("forget_todos", {}, [("write_todos", tool_examples.TODOS)])
    monkeypatch.setitem(EXAMPLES, "Forget.", example)
    Agent.objects.filter(slug="full").delete()
    world.make_agent("full", tools=["*", "forget_todos"])
    problem = world.problem("Forget.", example, declarations()["forget_todos"])
    assert problem.endswith("and changed ['vel_planning.Todo']")
