"""Every public name of the specification exists and accepts its documented arguments."""

from __future__ import annotations

import asyncio
import inspect
import os
import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import vel
from tests.agents.sdk.scripts import place
from tests.support.hang import HANG
from vel import (
    DEFAULT_AGENTS,
    AgentConfig,
    AgentRegistry,
    BaseMiddleware,
    BubblewrapSandbox,
    DatabaseBackend,
    DatabaseMiddleware,
    DeepAgent,
    DeepAgentConfig,
    FileData,
    FilesystemMiddleware,
    HarnessConfig,
    HumanInTheLoopMiddleware,
    Middleware,
    PlanningMiddleware,
    QueryResult,
    SandboxFilesystemBackend,
    SandboxMiddleware,
    SandboxNotAvailableError,
    SeatbeltSandbox,
    SetupError,
    Skill,
    SkillInjectionMode,
    SkillRegistry,
    SkillsMiddleware,
    SkillsRegistry,
    StateFilesystemBackend,
    SubagentConfig,
    SubagentMiddleware,
    SubagentResult,
    SubagentSpawner,
    SubagentStatus,
    TodoItem,
    TodoList,
    ToolSpec,
    VelHarness,
    create_coding_harness,
    create_deep_agent,
    create_harness,
    create_research_harness,
    create_sandbox,
    load_skill,
    load_skills_from_directory,
    scripted_model,
)

__all__ = ["place"]

SKILL = (
    "---\nname: sql\ndescription: Querying databases\ntags: [data]\n"
    "triggers: ['sql*', 'query']\n---\nUse SELECT.\n"
)


def names_of(call: Any) -> list[str]:
    return [name for name in inspect.signature(call).parameters if name != "self"]


def test_every_name_can_be_imported_and_others_cannot() -> None:
    for name in vel.__all__:
        assert getattr(vel, name) is not None
    assert set(vel.__all__) <= set(dir(vel))
    with pytest.raises(AttributeError, match="nonsense"):
        vel.nonsense  # noqa: B018


def test_the_package_alone_costs_nothing() -> None:
    """Django imports the package before its apps are ready."""
    seen = "import sys, agents, vel; print([n for n in ('django', 'pydantic') if n in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", seen], capture_output=True, text=True, check=True
    ).stdout
    assert out == "[]\n"


def test_the_names_need_no_settings() -> None:
    """A script imports them before Vel has chosen its database."""
    seen = "import sys, vel; [getattr(vel, n) for n in vel.__all__]; "
    seen += "print([n for n in ('agents.models', 'velproject.settings') if n in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", seen],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out == "[]\n"


def test_signatures_are_those_of_the_specification() -> None:
    assert names_of(create_deep_agent) == [
        "model", "tools", "skill_dirs", "sandbox", "sandbox_working_dir", "databases", "subagents",
        "interrupt_on", "persistence_path", "options",
    ]  # fmt: skip
    assert names_of(DeepAgent.run)[:3] == ["message", "session_id", "context"]
    assert names_of(DeepAgent.run_stream)[:3] == ["message", "session_id", "mode"]
    assert names_of(DeepAgent.resume)[:2] == ["session_id", "modified_state"]
    assert names_of(DeepAgent.reject)[:2] == ["session_id", "reason"]
    assert names_of(VelHarness.run)[:3] == ["message", "session_id", "context"]
    assert names_of(VelHarness.run_stream)[:3] == ["message", "session_id", "context"]
    assert names_of(VelHarness.register_agent) == ["agent_id", "config"]
    assert names_of(create_coding_harness)[:2] == ["working_directory", "config"]
    defaults = DeepAgentConfig()
    for name, value in {
        "include_builtin_skills": True, "auto_load_skills": True, "sandbox_enabled": True,
        "sandbox_working_dir": "./workspace", "sandbox_network": False, "sandbox_timeout": 30,
        "database_read_only": True, "max_concurrent_subagents": 5, "persistence_path": None,
        "max_steps": 50, "checkpoint_interval": 5,
    }.items():  # fmt: skip
        assert getattr(defaults, name) == value
    assert HarnessConfig().max_turns == 100
    secret = {"provider": "anthropic", "api_key": "sk-secret"}
    config = DeepAgentConfig(model=secret, databases={"a": "postgresql://u:secret@h/d"})
    assert "secret" not in repr(config) + repr(HarnessConfig(model=secret))
    with pytest.raises(SetupError, match="unknown keys"):
        DeepAgentConfig(model={"provider": "scripted", "temprature": 1})
    with pytest.warns(UserWarning, match="checkpoint_interval does nothing"):
        create_deep_agent(checkpoint_interval=7)


def test_a_plan() -> None:
    planning = PlanningMiddleware()
    assert isinstance(planning, Middleware)
    planning.write_todos("Sell", ["Load", "Chart"])
    result = planning.write_todos(
        "Chart it", [], completed=["todo_0"], blocked=[{"id": "todo_1", "reason": "no data"}]
    )
    assert result["counts"] == {"pending": 0, "in_progress": 0, "completed": 1, "blocked": 1}
    assert result["todos"].splitlines()[4:] == ["- [x] Load", "- [!] Chart", "  - no data"]
    other = PlanningMiddleware()
    other.load_state(planning.get_state())
    assert other.todo_list == planning.todo_list
    assert [one.name for one in planning.get_tools()] == ["write_todos", "read_todos"]
    assert "write_todos" in planning.get_system_prompt_segment()
    todos = TodoList()
    item = todos.add("Sell")
    assert item.to_dict()["status"] == "pending"
    assert todos.complete(item.id, notes="sold")
    assert (item.status, item.notes) == ("completed", "sold")
    assert not todos.complete("todo_9")
    assert not todos.block("todo_9", "why")
    assert todos.get_completed() == [item]
    assert TodoItem(id="a", task="b").status == "pending"


def test_files() -> None:
    files = FilesystemMiddleware(backend=StateFilesystemBackend())
    assert files.write_file("/a.md", "one\ntwo\n")["status"] == "ok"
    assert "two" in files.read_file("/a.md", 0, 100)["content"]
    assert files.edit_file("/a.md", "two", "three")["status"] == "ok"
    assert files.glob("**/*.md")["matches"] == ["/a.md"]
    assert files.grep("three", "/", "*.md")["total_matches"] == 1
    assert files.ls("/")["entries"][0]["name"] == "a.md"
    found = StateFilesystemBackend()
    found.write_file("/b.md", "ä\ntwo")
    stored = found.file_data("/b.md")
    assert stored == FileData(["ä", "two"], stored.created_at, stored.created_at, 6)
    assert FileData.from_content("ä\ntwo").size_bytes == 6
    assert datetime.fromisoformat(stored.created_at).tzinfo is UTC
    assert {one.name for one in files.get_tools()} == {
        "ls", "read_file", "write_file", "edit_file", "glob", "grep",
    }  # fmt: skip


@pytest.mark.bubblewrap
def test_sandboxes(place: Path) -> None:
    place.chmod(0o755)
    sandbox = create_sandbox(
        working_dir=str(place / "work"), allowed_paths=[], network=False, timeout=30
    )
    assert isinstance(sandbox, BubblewrapSandbox)
    assert sandbox.execute("echo $((6 * 7))", timeout=10).stdout == "42\n"
    assert sandbox.execute_python("print(6 * 7)").to_dict()["success"]
    commands = SandboxMiddleware(str(place / "work"))
    assert [one.name for one in commands.get_tools()] == ["execute", "execute_python"]
    assert commands.execute("echo $((6 * 7))")["stdout"] == "42\n"
    assert commands.execute_python("print(6 * 7)")["success"]
    backend = SandboxFilesystemBackend(str(place / "work"), network=False, timeout=30)
    backend.write_file("/a.txt", "text")
    assert backend.execute("cat a.txt")["stdout"] == "text"
    if platform.system() == "Linux":
        with pytest.raises(SandboxNotAvailableError):
            SeatbeltSandbox(working_dir=str(place / "work"))


def test_skills(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "SKILL.md").write_text(SKILL)
    skill = load_skill(tmp_path / "sql" / "SKILL.md")
    assert isinstance(skill, Skill)
    assert [one.name for one in load_skills_from_directory(tmp_path)] == ["sql"]
    assert SkillsRegistry is SkillRegistry
    registry = SkillRegistry(skill_dirs=[str(tmp_path)], include_builtin=False)
    assert registry.activate("sql")
    assert [one.name for one in registry.get_active()] == ["sql"]
    assert registry.deactivate("sql")
    assert [one.name for one in registry.match_triggers("help with SQL queries")] == ["sql"]
    found = registry.find_skill("querying a database", threshold=0.2)
    assert found is not None
    middleware = SkillsMiddleware(
        skill_dirs=[str(tmp_path)],
        include_builtin=False,
        auto_load=True,
        injection_mode=SkillInjectionMode.TOOL_RESULT,
    )
    assert "'name': 'sql'" in str(middleware.list_skills())
    assert "Use SELECT" in middleware.load_skill("sql")
    assert "no skill 'x'" in middleware.load_skill("x")
    assert "Use SELECT" in middleware.activate_skill("sql")
    assert middleware.get_state() == {"active": ["sql"]}
    middleware.load_state({"active": []})
    assert middleware.deactivate_skill("sql") == "The skill sql is not active."
    assert "Use SELECT" in (middleware.auto_detect_skill("querying a database") or "")


@pytest.mark.django_db(transaction=True)
def test_databases(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3)")
    urls = {"shop": f"sqlite:///{path}"}

    async def use() -> None:
        reads = DatabaseBackend(connections=urls, read_only=True, query_timeout=30, row_limit=2)
        result = await reads.execute("SELECT a FROM t WHERE a >= :least", "shop", {"least": 1})
        assert (result.columns, result.row_count, result.truncated) == (["a"], 2, True)
        assert (await reads.get_tables()).rows[0]["table_name"] == "t"
        assert (await reads.get_schema("shop")).row_count == 1
        assert (await reads.describe_table("t", "shop")).rows[0]["column_name"] == "a"
        for refused in ("DELETE FROM t", "SELECT a FROM t; DELETE FROM t"):
            assert (await reads.execute(refused, "shop")).error
        assert "no database 'other'" in str((await reads.execute("SELECT 1", "other")).error)
        await reads.close()
        writes = DatabaseBackend(urls, read_only=False)
        assert (await writes.execute("UPDATE t SET a = 9 WHERE a = 1")).row_count == 1
        assert "| 9 |" in (await writes.execute("SELECT a FROM t")).to_markdown_table()
        await writes.close()
        tools = DatabaseMiddleware(urls)
        assert [one.name for one in tools.get_tools()] == [
            "execute_sql", "get_schema", "list_tables", "describe_table",
        ]  # fmt: skip
        assert (await tools.execute_sql("SELECT a FROM t"))["row_count"] == 3
        assert (await tools.execute_sql("DELETE FROM t"))["error"]
        assert (await tools.list_tables())["rows"][0]["table_name"] == "t"
        assert (await tools.describe_table("t"))["rows"][0]["column_name"] == "a"
        assert (await tools.get_schema())["row_count"] == 1
        await tools.close()

    asyncio.run(use())
    made = QueryResult(columns=["a"], rows=[{"a": 1}], row_count=1)
    assert made.to_dict()["success"]
    assert QueryResult(columns=[], rows=[], row_count=0, error="no").to_markdown_table() == (
        "Error: no"
    )


@pytest.mark.parametrize("most", [-1, "5", None, 2.5, True])
@pytest.mark.parametrize("error", [None, "no"])
def test_a_table_of_a_wrong_number_of_rows_is_refused(most: Any, error: str | None) -> None:
    found = QueryResult(columns=["a"], rows=[{"a": 1}] * 25, row_count=25, error=error)
    with pytest.raises(vel.SetupError, match="max_rows must be a whole number from 0"):
        found.to_markdown_table(most)


def test_a_table_may_have_no_rows() -> None:
    found = QueryResult(columns=["a"], rows=[{"a": 1}] * 25, row_count=25)
    assert found.to_markdown_table(0).endswith("Showing 0 of 25 rows")


def test_agent_types() -> None:
    registry = AgentRegistry({"writer": AgentConfig(tools=["write_file"], max_turns=10)})
    assert registry.list() == ["default", "explore", "plan", "writer"]
    turns = [registry.get(name).max_turns for name in registry.list()]  # type: ignore[union-attr]
    assert turns == [50, 30, 20, 10]
    assert list(DEFAULT_AGENTS) == ["default", "explore", "plan"]
    assert DEFAULT_AGENTS["plan"] == registry.get("plan")
    DEFAULT_AGENTS["default"].tools.append("grep")
    assert DEFAULT_AGENTS["default"] != AgentRegistry().get("default"), "each has its own"
    DEFAULT_AGENTS["default"].tools.pop()
    registry.register("reader", AgentConfig(tools=["read_file"], description="Reads"))
    assert "- reader: Reads" in registry.get_descriptions()
    assert registry.get("nobody") is None
    config = SubagentConfig(
        name="market", description="Markets", system_prompt="x", tools=[], model=None, skills=["a"]
    )
    assert config.to_dict() == {"name": "market", "description": "Markets", "skills": ["a"]}
    assert HumanInTheLoopMiddleware(interrupt_on={"execute": True}).should_interrupt("execute")
    assert BaseMiddleware().get_tools() == ()
    assert ToolSpec.from_function(len, name="length", description="Count").name == "length"


@pytest.mark.django_db(transaction=True)
def test_subagents_from_a_program() -> None:
    model = scripted_model(["Found it."], "sub")

    async def use() -> None:
        spawner = SubagentSpawner(
            registry=AgentRegistry(), model=model, max_concurrent=1, sandbox_enabled=False
        )
        done = await spawner.spawn("Look", "explore")
        assert isinstance(done, SubagentResult)
        assert (done.status, done.result) == (SubagentStatus.COMPLETED, "Found it.")
        assert [message["role"] for message in done.messages] == ["user", "assistant"]
        first, second = spawner.start("Look"), spawner.start("Look again", "plan")
        assert spawner.cancel(second)
        assert (await spawner.wait(first, timeout=HANG)).status == SubagentStatus.COMPLETED
        assert (await spawner.wait(second)).status == SubagentStatus.CANCELLED
        assert not spawner.cancel(first)
        with pytest.raises(ValueError, match="Unknown agent type: x"):
            spawner.start("Look", "x")
        await spawner.close()
        middleware = SubagentMiddleware(
            default_model=model,
            default_tools=[],
            subagents=[SubagentConfig("market", "Markets")],
            max_concurrent=5,
            sandbox_enabled=False,
        )
        assert [one.name for one in middleware.get_tools()] == ["task", "parallel_tasks"]
        found = await middleware.parallel_tasks(
            [{"subagent": "market", "task": "a"}, {"subagent": "nobody", "task": "b"}]
        )
        assert (found["task_count"], found["success_count"]) == (2, 1)
        assert (await middleware.task("general", "a", "b"))["result"] == "Found it."
        await middleware.close()

    asyncio.run(use())


@pytest.mark.django_db(transaction=True)
def test_harnesses(tmp_path: Path) -> None:
    model = scripted_model([{"tool_calls": [("ls", {})]}, "Two plus two is 4."], "four")
    base = HarnessConfig(model=model, sandbox=False)

    async def use() -> None:
        async with create_harness(base) as harness:
            assert "4" in await harness.run("What is 2+2?", session_id="user-123")
            harness.register_agent("writer", AgentConfig(description="Writes"))
            assert harness.list_agent_types() == ["default", "explore", "plan", "writer"]
            parts = [part async for part in harness.run_stream("Again", session_id="user-123")]
            text = "".join(part["delta"] for part in parts if part["type"] == "text-delta")
            assert text == "Two plus two is 4."
            kinds = [part["type"] for part in parts]
            assert kinds[0] == "start"
            assert kinds[-1] == "finish"
            assert "tool-output-available" in kinds
            state = harness.get_state()
            harness.load_state(state)
            assert harness.get_state() == state

    asyncio.run(use())
    coding = create_coding_harness(str(tmp_path), config=HarnessConfig(model=model))
    assert coding.config.working_directory == str(tmp_path)
    assert coding.config.sandbox
    research = create_research_harness(config={"model": model})
    assert "research" in (research.config.system_prompt or "")
    with pytest.raises(SetupError, match="no setting 'modle'"):
        HarnessConfig.from_dict({"modle": 1})
    with pytest.raises(SetupError, match="say which"):
        VelHarness(HarnessConfig(model=model, database=True))
