"""FilesystemMiddleware: the backend of a program, of any behaviour, has its agent's files."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.middleware import program_files
from agents.middleware.base import PromptContext
from agents.middleware.custom.toolkit import Toolkit
from agents.middleware.filesystem import FilesystemMiddleware as EngineMiddleware
from agents.middleware.program_files import ProgramFiles, call_limits
from agents.models import AgentVersion, ApprovalRequest, StateFile, ToolCall
from agents.services.approvals.waiting_call import current_text
from agents.spec import AgentSpec
from sandbox.cancellation import Cancellation
from sandbox.own_directory.rules import FileRules
from tests.agents.sdk.conftest import MakeAgent
from tests.agents.sdk.scripts import place
from tests.support.own_backends import Faulty, OwnFiles, RemoteMachine
from tests.support.runs import wait_until
from vel import (
    CompositeBackend,
    FilesystemMiddleware,
    RunInterrupted,
    SandboxFilesystemBackend,
    SandboxMiddleware,
    SetupError,
    StateFilesystemBackend,
    SubagentConfig,
    create_deep_agent,
    create_execution_tools,
    scripted_model,
)

__all__ = ["place"]

Call = tuple[str, dict[str, Any]]


def run(make_agent: MakeAgent, backend: Any, *calls: Call, **options: Any) -> list[Any]:
    """Return the results of calls, each in its own turn, as the model gets them."""
    turns: list[Any] = [{"tool_calls": [call]} for call in calls]
    middleware = [FilesystemMiddleware(backend)]
    agent = make_agent([*turns, "done"], middleware=middleware, **options)
    assert asyncio.run(agent.run("Go")) == "done"
    rows = ToolCall.objects.order_by("turn", "position")
    found = [str(row.result_content) for row in rows]
    return [json.loads(text) if text.startswith("{") else text for text in found]


def composite(default: Any) -> CompositeBackend:
    return CompositeBackend(default, {"/notes": OwnFiles()})


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "backend",
    [
        CompositeBackend(composite(OwnFiles()), {"/more": composite(StateFilesystemBackend())}),
        OwnFiles(),
        StateFilesystemBackend(),
        composite(StateFilesystemBackend()),
        composite(OwnFiles()),
    ],
    ids=lambda backend: type(backend).__name__,
)
def test_an_agent_works_with_the_files_of_its_program(make_agent: MakeAgent, backend: Any) -> None:
    files = FilesystemMiddleware(backend)
    files.write_file("/data.csv", "a,b\n1,2")
    results = run(
        make_agent,
        backend,
        ("read_file", {"path": "data.csv", "offset": None}),
        ("edit_file", {"file_path": "/data.csv", "old_string": "1,2", "new_string": "3,4"}),
        ("write_file", {"path": "/notes/deep/a.md", "content": "A note"}),
        ("glob", {"pattern": "**/*.md", "file_path": "/notes"}),
        ("grep", {"pattern": "NOTE", "path": "/notes", "ignore_case": True}),
        ("ls", {"file_path": "/notes"}),
        ("write_file", {"path": "/memory/a.md"}),
        ("execute", {"command": "ls"}),
    )
    read, edited, _, globbed, found, listed, _, executed = results
    assert read["content"] == "     1 | a,b\n     2 | 1,2"
    assert edited["status"] == "ok"
    assert globbed["matches"] == ["/notes/deep/a.md"]
    assert [match["file"] for match in found["matches"]] == ["/notes/deep/a.md"]
    assert [entry["name"] for entry in listed["entries"]] == ["deep"]
    assert "There is no tool 'execute'" in executed
    assert files.read_file("/data.csv")["content"].endswith("3,4")
    assert files.read_file("/notes/deep/a.md")["content"].endswith("A note")
    assert not StateFile.objects.exists(), "no file is in Vel's database"


FAULTS = {
    "raises": "read_file of Faulty failed: ConnectionError: the storage is away",
    "exits": "failed: RuntimeError: it raised SystemExit",
    "bad text": "failed: BadText: (its text failed with ValueError)",
    "none": "returned a value of type NoneType, but a dictionary is needed",
    "list": "of type list",
    "coroutine": "of type coroutine",
    "object": "of type object, but JSON values are needed",
    "bytes": "of type bytes",
    "number": "not finite",
    "huge number": "more than 64 bits",
    "keys": "a key of type int",
    "deep": "nested deeper than 20",
    "huge": "more than 1000000 characters",
}


def test_each_fault_of_a_backend_is_the_result_of_its_call(make_agent: MakeAgent) -> None:
    calls: list[Call] = [("read_file", {"path": path}) for path in (*FAULTS, "nul")]
    *results, nul = run(make_agent, Faulty(), *calls)
    for (path, text), result in zip(FAULTS.items(), results, strict=True):
        assert text in result, path
    assert nul["content"] == "a\ufffdb ?"
    errors = list(ToolCall.objects.order_by("turn").values_list("is_error", flat=True))
    assert errors == [True] * len(FAULTS) + [False]


def test_a_backend_that_hangs_is_given_up() -> None:
    backend = Faulty()
    files, _ = ProgramFiles.of(backend).opened(read_only=False)
    assert files is not None
    try:
        with call_limits(0.001, Cancellation()):
            result = files.read_file("/hangs")
        assert "read_file of Faulty was given up: it took longer than 0.001 s" in result["error"]
        assert len(program_files.BESIDE.hanging) == 1
    finally:
        backend.goes_on.set()
    wait_until(lambda: not program_files.BESIDE.hanging, "the end of the call")


def test_a_run_with_a_hanging_backend_can_be_cancelled(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, wait, reasons = Faulty(), program_files.BESIDE.wait, []

    def watched(*given: Any, **more: Any) -> Any:
        try:
            return wait(*given, **more)
        except TimeoutError as error:
            reasons.append(str(error))
            raise

    monkeypatch.setattr(program_files.BESIDE, "wait", watched)
    turns = [{"tool_calls": [("read_file", {"path": "hangs"})]}, "done"]
    agent = make_agent(turns, middleware=[FilesystemMiddleware(backend)])

    async def cancel() -> None:
        async for event in agent.run_stream("Go"):
            if event.type == "tool_call":
                await asyncio.to_thread(backend.hangs.wait)
                break

    try:
        asyncio.run(cancel())
        agent.close()
    finally:
        backend.goes_on.set()
    assert reasons == ["the call was cancelled"]
    wait_until(lambda: not program_files.BESIDE.hanging, "the end of the call")


def test_long_results_are_kept_by_vel(make_agent: MakeAgent, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "EVICT_BYTES": 2_000}
    backend = OwnFiles()

    def fetch() -> str:
        """Return a long line."""
        return "0123456789" * 1_000

    def path() -> str:
        return str(StateFile.objects.get().path)

    turns = [{"tool_calls": [("fetch", {})]}, "done"]
    agent = make_agent(turns, tools=[fetch], middleware=[FilesystemMiddleware(backend)])
    asyncio.run(agent.run("Go"))
    assert path().startswith("/sandbox/shared/results/")
    assert path() in str(ToolCall.objects.get().result_content)
    assert backend.files == {}


def test_a_read_only_agent_changes_no_file_and_runs_no_command(make_agent: MakeAgent) -> None:
    top, notes, memory = RemoteMachine(), OwnFiles(), StateFilesystemBackend()
    calls: list[Call] = [
        *[("write_file", {"path": f"{at}/a", "content": "b"}) for at in ("", "/notes", "/m")],
        ("execute", {"command": "x"}),
    ]
    backend = CompositeBackend(top, {"/notes": notes, "/m": memory})
    *written, executed = run(make_agent, backend, *calls, read_only=True)
    assert ["read-only" in text for text in written] == [True] * 3
    assert "There is no tool" in executed
    assert (top.files, notes.files, memory.stat("/a")) == ({}, {}, None)


def test_subagents_share_the_files_within_their_rights(make_agent: MakeAgent) -> None:
    backend = RemoteMachine()

    def child(name: str, **fields: Any) -> SubagentConfig:
        write = ("write_file", {"path": f"/{name}", "content": "x"})
        calls = [write, ("execute", {"command": name}), ("ls", {"path": "/"})]
        model = scripted_model([*[{"tool_calls": [call]} for call in calls], "Done."], name)
        return SubagentConfig(name, "Works.", model=model, **fields)

    tasks: list[Call] = [("task", {"subagent": name, "task": "Go"}) for name in ("work", "look")]
    children = [child("work"), child("look", read_only=True)]
    run(make_agent, backend, *tasks, subagents=children)
    assert backend.files == {"/work": "x"}
    rows = ToolCall.objects.exclude(tool="task").values_list("tool", "is_error")
    assert sorted(rows) == [
        ("execute", False),
        ("execute", True),
        ("ls", False),
        ("ls", False),
        ("write_file", False),
        ("write_file", True),
    ]


def test_commands_run_where_the_files_are(make_agent: MakeAgent) -> None:
    (result,) = run(make_agent, RemoteMachine(), ("execute", {"command": "make", "timeout": 7}))
    assert result == {"stdout": "make within 7", "exit_code": 0, "success": True}
    assert AgentVersion.objects.get().spec["toolkit"].endswith("/")


def test_the_prompt_names_the_paths_of_files_and_for_commands() -> None:
    def told(backend: Any, *tools: str, sandbox: bool = False) -> str:
        spec = AgentSpec(name="", slug="", sandbox=sandbox)
        files = None if backend is None else ProgramFiles.of(backend)
        names = frozenset({"read_file", *tools})
        return EngineMiddleware(files).prompt(PromptContext(spec, names, datetime.now(UTC)))

    assert "a storage of the user's program" in told(OwnFiles())
    assert "no tool runs code" in told(OwnFiles())
    assert "no tool runs code" in told(None)
    assert "no tool runs code" not in told(RemoteMachine(), "execute")
    text = told(composite(RemoteMachine()), "execute")
    assert "Commands do not see /notes" in text
    assert "Commands" not in told(None, "execute", sandbox=True)


def test_a_run_continues_only_where_its_files_are() -> None:
    def spec(files: Any) -> dict[str, Any]:
        return {"toolkit": Toolkit(files=files).fingerprint}

    own = ProgramFiles.of(OwnFiles())
    assert Toolkit(files=ProgramFiles.of(OwnFiles())).has_parts_of(spec(own))
    assert not Toolkit().has_parts_of(spec(own))
    assert not Toolkit(files=ProgramFiles.of(RemoteMachine())).has_parts_of(spec(own))


def test_an_approval_does_not_show_a_file_that_it_cannot_read(make_agent: MakeAgent) -> None:
    turns = [{"tool_calls": [("write_file", {"path": "/a.md", "content": "new"})]}, "done"]
    backend = OwnFiles()
    backend.files["/a.md"] = "old"
    agent = make_agent(
        turns, middleware=[FilesystemMiddleware(backend)], interrupt_on={"write_file": True}
    )
    with pytest.raises(RunInterrupted):
        asyncio.run(agent.run("Go", "s"))
    before = current_text(ApprovalRequest.objects.get())
    assert "storage of the Python program" in str(before)
    assert asyncio.run(_resumed(agent)) == "done"
    assert backend.files == {"/a.md": "new"}


async def _resumed(agent: Any) -> Any:
    return await agent.resume("s")


SCRIPT: list[Call] = [
    ("write_file", {"file_path": "/a/b.txt", "content": "one\ntwo\ntwo"}),
    ("read_file", {"path": "/a/b.txt", "offset": 1, "limit": None}),
    ("read_file", {"path": "/a/b.txt", "limit": 0}),
    ("read_file", {"path": 5}),
    ("edit_file", {"path": "/a/b.txt", "old_text": "two", "new_text": "2"}),
    ("edit_file", {"path": "/a/b.txt", "old_text": "two", "new_text": "2", "replace_all": True}),
    ("edit_file", {"path": "/a/b.txt", "old_text": "", "new_text": "2"}),
    ("grep", {"pattern": "(", "path": "/a"}),
    ("grep", {"pattern": "ONE", "path": "/a", "glob": "*.txt", "ignore_case": True}),
    ("glob", {"pattern": "*.txt", "path": "/a"}),
    ("write_file", {"path": "/nul", "content": "a\0b"}),
    ("ls", {"file_path": "/a"}),
]


def test_a_component_alone_gives_the_results_of_an_agent(make_agent: MakeAgent) -> None:
    alone = FilesystemMiddleware(StateFilesystemBackend())
    tools = {tool.name: tool for tool in alone.get_tools()}
    direct = [getattr(alone, name)(**values) for name, values in SCRIPT]
    in_agent = run(make_agent, StateFilesystemBackend(), *SCRIPT)
    for (name, values), one, other in zip(SCRIPT, direct, in_agent, strict=True):
        assert one.get("error", one) == other, (name, values)
    assert {name: tool.effect for name, tool in tools.items()}["grep"] == "read"
    assert tools["ls"].input_schema is not None
    with pytest.raises(TypeError, match="no parameter 'pth'"):
        alone.ls(pth="/a")


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["/a", "/b/c", "/b/d", "/ü"]), st.binary(max_size=20)))
def test_a_state_restores_the_files_in_memory(files: dict[str, bytes]) -> None:
    one, other = FilesystemMiddleware(), FilesystemMiddleware()
    other.write_file("/old.txt", "goes")
    for path, data in files.items():
        one.backend.write_bytes(path, data)
    other.load_state(json.loads(json.dumps(one.get_state())))
    assert other.get_state() == one.get_state()
    assert {path: other.backend.read_bytes(path, 100) for path in files} == files


@pytest.mark.parametrize(
    "state",
    [
        None,
        {"filez": {}},
        {"files": ["/a"]},
        {"files": {"a": "YQ=="}},
        {"files": {"/a": "%"}},
        {"files": {"/a": "YQ==", "/a/b": "YQ=="}},
    ],
)
def test_a_wrong_state_is_refused_before_anything_changes(state: Any) -> None:
    files = FilesystemMiddleware()
    files.write_file("/kept.txt", "stays")
    before = files.get_state()
    with pytest.raises(SetupError, match="load_state"):
        files.load_state(state)
    assert files.get_state() == before


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (OwnFiles(), {"sandbox_working_dir": "/tmp/a"}, "sandbox_working_dir has no effect"),
    (OwnFiles(), {"sandbox_network": True}, "sandbox_network has no effect"),
    (
        CompositeBackend(OwnFiles(), {"/sandbox/x": OwnFiles()}),
        {},
        "the route /sandbox/x is reserved",
    ),
    (CompositeBackend(OwnFiles(), {"/skills": OwnFiles()}), {}, "the route /skills is reserved"),
]


@pytest.mark.parametrize(("backend", "options", "message"), REFUSED)
def test_files_that_contradict_the_agent_are_refused(
    backend: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError, match=f"FilesystemMiddleware.*{message}"):
        create_deep_agent(middleware=[FilesystemMiddleware(backend)], **options)
    with pytest.raises(SetupError, match="FilesystemMiddleware without a sandbox"):
        create_deep_agent(middleware=[FilesystemMiddleware(OwnFiles()), SandboxMiddleware()])


def test_a_route_of_vels_memory_is_refused_before_the_run(make_agent: MakeAgent) -> None:
    backend = CompositeBackend(OwnFiles(), {"/memory/own": OwnFiles()})
    agent = make_agent(["done"], middleware=[FilesystemMiddleware(backend)])
    with pytest.raises(SetupError, match="route /memory/own"):
        asyncio.run(agent.run("Go"))
    assert not AgentVersion.objects.exists()


@pytest.mark.bubblewrap
def test_the_sandbox_of_a_backend_is_the_agents(place: Path) -> None:
    place.chmod(0o755)
    rules = FileRules(allow_write=(".github",), protect=("*.lock",))
    backend = SandboxFilesystemBackend(place / "work", network=True, timeout=7, rules=rules)
    config = create_deep_agent(middleware=[FilesystemMiddleware(backend)]).config
    assert config.sandbox_working_dir == str(place / "work")
    assert (config.sandbox_network, config.sandbox_timeout) == (True, 7)
    assert (config.sandbox_allow_write, config.sandbox_protect) == ((".github",), ("*.lock",))
    with pytest.raises(SetupError, match="sandbox_timeout=9 contradicts 7"):
        create_deep_agent(sandbox_timeout=9, middleware=[FilesystemMiddleware(backend)])
    with pytest.raises(SetupError, match=r"sandbox=False.*contradicts"):
        create_deep_agent(sandbox=False, middleware=[FilesystemMiddleware(backend)])
    half = SandboxFilesystemBackend(place / "work", timeout=2.5)
    with pytest.raises(SetupError, match="timeout: expected a whole number of seconds"):
        create_deep_agent(middleware=[FilesystemMiddleware(half)])


@pytest.mark.bubblewrap
def test_commands_and_own_files_work_together(make_agent: MakeAgent, place: Path) -> None:
    place.chmod(0o755)
    own = OwnFiles()
    backend = CompositeBackend(SandboxFilesystemBackend(place / "work"), {"/notes": own})
    results = run(
        make_agent,
        backend,
        ("execute", {"command": "echo made > made.txt"}),
        ("read_file", {"path": "made.txt"}),
        ("write_file", {"path": "/notes/a.md", "content": "A"}),
        sandbox=True,
    )
    assert results[0]["success"] is True
    assert results[1]["content"] == "     1 | made"
    assert own.files == {"/a.md": "A"}
    assert (place / "work/made.txt").read_text() == "made\n"


@pytest.mark.bubblewrap
def test_execution_tools_run_code_with_a_backend(place: Path) -> None:
    place.chmod(0o755)
    execute, python = create_execution_tools(SandboxFilesystemBackend(place / "work"))
    assert execute(command="echo out; exit 3")["exit_code"] == 3
    assert python(code="print(6 * 7)")["stdout"] == "42\n"
    assert "does not fit: timeout" in execute(command="ls", timeout=-1)["error"]
    sandbox = SandboxMiddleware(str(place / "work"))
    assert sandbox.execute("echo out; exit 3")["exit_code"] == 3
    assert [tool.name for tool in create_execution_tools(RemoteMachine())] == ["execute"]
    with pytest.raises(SetupError, match="backend"):
        create_execution_tools(OwnFiles())


@pytest.mark.bubblewrap
def test_the_time_limit_of_a_component_is_that_of_its_commands(place: Path) -> None:
    place.chmod(0o755)
    backend = SandboxFilesystemBackend(place / "work", timeout=1)
    sandbox = SandboxMiddleware(str(place / "work"), timeout=1)
    for run in (create_execution_tools(backend)[0], sandbox.execute):
        assert run(command="sleep 20")["success"] is False
        assert run(command="sleep 2", timeout=20)["success"] is True
    assert sandbox.execute_python("import time; time.sleep(20)")["success"] is False
