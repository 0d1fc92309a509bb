"""Vel's own middleware in an agent: it configures or leaves out what Vel has, or is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.middleware.registry import toolset_for
from agents.models import AgentVersion, ToolCall
from agents.spec import AgentSpec
from tests.agents.engine.test_model_faults import ANSWER, LOOK, RETRIED, served
from tests.agents.sdk.conftest import MakeAgent
from tests.agents.sdk.scripts import place
from tests.support.messages_script import Turn
from vel import (
    BaseMiddleware,
    CachingMiddleware,
    ContextManagementMiddleware,
    DatabaseBackend,
    DatabaseMiddleware,
    FilesystemMiddleware,
    MemoryMiddleware,
    PlanningMiddleware,
    RetryMiddleware,
    RunFailed,
    SandboxFilesystemBackend,
    SandboxMiddleware,
    SetupError,
    SubagentMiddleware,
    create_deep_agent,
)

__all__ = ["place"]

MODEL = {"provider": "anthropic", "model": "claude-sonnet-5-5"}
LINES = "A line of the result.\n" * 500


def fetch() -> str:
    """Return a long text."""
    return LINES


def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("CREATE TABLE t (a INT); INSERT INTO t VALUES (7)")
    return f"sqlite:///{path}"


def spec_of_run() -> dict[str, Any]:
    return AgentVersion.objects.latest("number").spec


def test_each_configures_the_agent(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(
        [{"tool_calls": [("execute_sql", {"query": "SELECT 7 UNION ALL SELECT 8"})]}, "ok"],
        middleware=[
            DatabaseMiddleware(DatabaseBackend({"shop": shop(tmp_path)}, row_limit=1)),
            ContextManagementMiddleware(evict_bytes=5_000, compact_at=0.5),
            MemoryMiddleware(saving="save", requests="continue"),
            CachingMiddleware(enabled=False),
            RetryMiddleware(3, [{"tool": "execute_sql", "attempts": 2}]),
        ],
    )
    asyncio.run(agent.run("Go"))
    spec = spec_of_run()
    assert spec["databases"] == ["shop"]
    assert agent.config.database_limits == {"shop": {"row_limit": 1}}
    assert (spec["evict_bytes"], spec["compact_at"]) == (5_000, 0.5)
    assert (spec["memory_saving"], spec["memory_requests"]) == ("save", "continue")
    assert spec["prompt_caching"] is False
    assert spec["model_attempts"] == 3
    assert spec["tool_retries"] == [{"tool": "execute_sql", "attempts": 2, "backoff": 1.0}]
    assert {"write_memory", "execute_sql"} <= set(spec["tools"])
    result = str(ToolCall.objects.get(tool="execute_sql").result_content).replace(" ", "")
    assert "7" in result
    assert '"truncated":true' in result
    assert spec["toolkit"] == "", "no part exists only in this program"


def test_an_option_returns_to_its_default_without_the_middleware(make_agent: MakeAgent) -> None:
    given = [CachingMiddleware(False), ContextManagementMiddleware(False), RetryMiddleware(1)]
    asyncio.run(make_agent(["ok"], middleware=given).run("Go"))
    spec = spec_of_run()
    assert (spec["prompt_caching"], spec["context_management"]) == (False, False)
    asyncio.run(make_agent(["ok"]).run("Go"))
    spec = spec_of_run()
    assert spec.get("prompt_caching", True)
    assert spec.get("context_management", True)
    assert spec.get("model_attempts") is None


@pytest.mark.parametrize(
    ("usual", "middleware", "is_cut"),
    [
        (20_000, [], False),
        (20_000, [ContextManagementMiddleware(evict_bytes=1_000)], True),
        (2_000, [ContextManagementMiddleware(enabled=False)], False),
    ],
)
def test_long_results_go_to_files_by_the_agents_settings(
    make_agent: MakeAgent, usual: int, middleware: list[Any], is_cut: bool, settings: Any
) -> None:
    settings.VEL = {**settings.VEL, "EVICT_BYTES": usual}
    turns = [{"tool_calls": [("fetch", {})]}, "ok"]
    asyncio.run(make_agent(turns, tools=[fetch], middleware=middleware).run("Go"))
    result = ToolCall.objects.get().result_content
    assert ("too long" in str(result)) is is_cut
    assert (result == LINES) is not is_cut


@pytest.mark.parametrize(("attempts", "asked"), [(1, 1), (2, 2), (None, 3)])
@pytest.mark.django_db(transaction=True)
def test_the_agents_settings_limit_retries_of_a_model(attempts: int | None, asked: int) -> None:
    broken = Turn(fault=RETRIED["529"])
    with served([broken] * 5, MODEL_ATTEMPTS=3) as server:
        agent = create_deep_agent(MODEL, sandbox=False, middleware=[RetryMiddleware(attempts)])
        with pytest.raises(RunFailed):
            asyncio.run(agent.run("Go"))
        agent.close()
    assert len(server.requests) == asked


@pytest.mark.parametrize("middleware", [[], [CachingMiddleware(False)]])
@pytest.mark.django_db(transaction=True)
def test_prompts_are_cached_unless_the_agent_disables_it(middleware: list[Any]) -> None:
    with served([LOOK, ANSWER]) as server:
        agent = create_deep_agent(MODEL, sandbox=False, middleware=middleware)
        asyncio.run(agent.run("Go"))
        agent.close()
    asks = [b"cache_control" in request.body for request in server.requests]
    assert asks == [not middleware] * 2
    assert server.violations == []


@pytest.mark.parametrize(("depth", "delegates"), [(1, True), (0, False)])
def test_an_agent_without_levels_of_delegation_has_no_subagents(
    make_agent: MakeAgent, depth: int, delegates: bool
) -> None:
    """The error for a subclass of `SubagentMiddleware` advises this option."""
    asyncio.run(make_agent(["ok"], options={"subagent_depth": depth}).run("Go"))
    assert ("task" in toolset_for(AgentSpec(**spec_of_run())).tools) is delegates


class OwnPlan(PlanningMiddleware):
    def write_todos(self, *given: Any, **more: Any) -> dict[str, Any]:
        return {}


class OwnRetries(RetryMiddleware):
    async def wrap_model_call(self, call: Any, handler: Any) -> Any:
        return await handler()


class OwnSubagents(SubagentMiddleware):
    async def task(self, *given: Any, **more: Any) -> Any:
        return None


class Careful(RetryMiddleware):
    """A subclass that only has other arguments."""

    def __init__(self) -> None:
        super().__init__(model_attempts=9)

    def is_careful(self) -> bool:
        return True


class Configurable(BaseMiddleware):
    """A middleware of a program whose method has the name of one of Vel's."""

    def configure(self, limit: int) -> None:
        raise AssertionError

    def get_tools(self) -> list[Any]:
        return [fetch]


def test_a_subclass_with_other_arguments_configures_and_others_stay() -> None:
    config = create_deep_agent(middleware=[Careful(), own := Configurable()]).config
    assert config.options == {"model_attempts": 9}
    assert config.middleware == [own]


DATABASES = {"shop": "sqlite:////tmp/shop.sqlite3"}
OTHER = {"shop": "sqlite:////tmp/other.sqlite3"}
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([OwnPlan()], {}, r"OwnPlan overrides write_todos.*BaseMiddleware.*planning=False"),
    ([OwnRetries()], {}, r"OwnRetries overrides wrap_model_call.*model_attempts=1"),
    ([OwnSubagents()], {}, r'OwnSubagents overrides task.*options=\{"subagent_depth": 0\}'),
    ([RetryMiddleware(), Careful()], {}, "Careful is given twice.*one RetryMiddleware"),
    ([SandboxMiddleware()], {"sandbox": False}, "sandbox=False.*SandboxMiddleware: leave one out"),
    ([SandboxMiddleware(), FilesystemMiddleware()], {}, "FilesystemMiddleware without a sandbox"),
    ([FilesystemMiddleware(), SandboxMiddleware()], {}, "FilesystemMiddleware without a sandbox"),
    (
        [SandboxMiddleware("/tmp/a")],
        {"sandbox_working_dir": "/tmp/b"},
        "/tmp/b.*contradicts.*/tmp/a of the SandboxMiddleware",
    ),
    (
        [SandboxMiddleware(timeout=5)],
        {"sandbox_timeout": 6},
        "sandbox_timeout=6 contradicts 5 of the SandboxMiddleware",
    ),
    (
        [DatabaseMiddleware(DATABASES)],
        {"databases": OTHER},
        "shop has another URL in the DatabaseMiddleware",
    ),
    (
        [DatabaseMiddleware(DATABASES, read_only=False)],
        {"databases": {"more": OTHER["shop"]}},
        "database_read_only=True contradicts read_only=False of the DatabaseMiddleware",
    ),
    (
        [DatabaseMiddleware(DatabaseBackend(DATABASES, row_limit=5))],
        {"databases": DATABASES, "database_limits": {"shop": {"row_limit": 6}}},
        "database_limits: shop has other limits in the DatabaseMiddleware",
    ),
    (
        [MemoryMiddleware("save")],
        {"options": {"memory_saving": "ask"}},
        "memory_saving='ask' contradicts 'save' of the MemoryMiddleware",
    ),
    ([MemoryMiddleware()], {"profile": "sandbox_only"}, "MemoryMiddleware: memory=True contra"),
    (
        [CachingMiddleware()],
        {"options": {"prompt_caching": False}},
        "prompt_caching=False contradicts True of the CachingMiddleware",
    ),
    (
        [RetryMiddleware(tool_retries=[{"tool": "ls", "attempts": 3}])],
        {"tool_retries": [{"tool": "ls", "attempts": 2}]},
        "tool_retries contradicts that of the RetryMiddleware",
    ),
    ([RetryMiddleware], {}, "middleware must be instances of BaseMiddleware"),
]  # fmt: skip


@pytest.mark.parametrize(("middleware", "options", "message"), REFUSED)
def test_options_without_effect_are_refused(
    middleware: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError, match=message):
        create_deep_agent(middleware=middleware, **options)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        (SandboxMiddleware, {"timeout": 0}, "timeout"),
        (FilesystemMiddleware, {"backend": "/srv"}, "backend"),
        (SubagentMiddleware, {"default_model": SandboxMiddleware()}, "model"),
        (SandboxMiddleware, {"network": "no"}, "network"),
        (DatabaseMiddleware, {"connections": "sqlite:///a"}, "connections"),
        (
            DatabaseMiddleware,
            {"connections": DatabaseBackend(DATABASES), "read_only": False},
            "read_only",
        ),
        (ContextManagementMiddleware, {"evict_bytes": 1}, "evict_bytes"),
        (ContextManagementMiddleware, {"compact_at": 80}, "compact_at"),
        (ContextManagementMiddleware, {"enabled": False, "compact_at": 0.5}, "compact_at"),
        (MemoryMiddleware, {"saving": "always"}, "saving"),
        (CachingMiddleware, {"enabled": None}, "enabled"),
        (RetryMiddleware, {"model_attempts": 0}, "model_attempts"),
        (RetryMiddleware, {"tool_retries": [{"tool": "ls"}]}, "tool_retries"),
    ],
)
def test_a_wrong_argument_is_named(kind: Any, given: dict[str, Any], name: str) -> None:
    with pytest.raises(SetupError, match=name):
        kind(**given)


@pytest.mark.bubblewrap
def test_a_sandbox_and_its_files_share_a_directory(place: Path) -> None:
    place.chmod(0o755)
    directory = str(place / "work")
    files = FilesystemMiddleware(SandboxFilesystemBackend(directory))
    commands = SandboxMiddleware(directory, network=True, timeout=60)
    for both in ([files, commands], [commands, files]):
        config = create_deep_agent(middleware=both).config
        assert config.middleware == []
        assert config.sandbox_working_dir == directory
        assert (config.sandbox_network, config.sandbox_timeout) == (True, 60)
