"""Files in /sandbox/outputs are kept for the program; hostile files do no harm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.models import Run, Thread
from agents.settings import DataSettings
from tests.agents.sdk.conftest import MakeAgent
from tests.agents.sdk.scripts import cache, place, run
from tests.sandbox.own_directory.checkouts import contents, make_checkout
from tests.sandbox.places import AS_ROOT, reachable_directory
from vel import AgentFile, SetupError, StreamEvent, create_harness, scripted_model

__all__ = ["cache", "place"]
pytestmark = pytest.mark.bubblewrap

WRITE = ("write_file", {"path": "/sandbox/outputs/report.md", "content": "R"})


def command(text: str) -> tuple[str, dict[str, Any]]:
    return ("execute", {"command": text})


def turns(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    return [*({"tool_calls": [call]} for call in calls), "Done."]


@pytest.fixture
def work() -> Iterator[Path]:
    """Return a directory for an agent, in which `outputs` is made."""
    with reachable_directory() as found:
        (found / "own").mkdir()
        if AS_ROOT:
            os.chown(found / "own", 65534, 65534)
        yield found


def collected(
    make_agent: MakeAgent, work: Path, *calls: tuple[str, dict[str, Any]], **options: Any
) -> tuple[list[StreamEvent], list[AgentFile]]:
    """Return the artifact events of a run, and its files."""
    given = {"sandbox_working_dir": None, "outputs_dir": work / "outputs", **options}
    agent = make_agent(turns(*calls), sandbox=True, **given)

    async def use() -> tuple[list[StreamEvent], list[AgentFile]]:
        events = [event async for event in agent.run_stream("go", session_id="one")]
        kinds = [event.type for event in events]
        assert kinds[-1] == "end"
        return [event for event in events if event.type == "artifact"], await agent.files("one")

    return asyncio.run(use())


def test_outputs_are_copied_reported_and_returned(make_agent: MakeAgent, work: Path) -> None:
    events, files = collected(make_agent, work, WRITE, command("mkdir -p ../outputs/a/b"))
    copy = work / "outputs" / Thread.objects.get().pk / "report.md"
    assert files == [AgentFile("/sandbox/outputs/report.md", 1, str(copy))]
    assert copy.read_text() == "R"
    assert [(event.content, event.metadata) for event in events] == [
        (
            "report.md",
            {
                "path": "/sandbox/outputs/report.md",
                "host_path": str(copy),
                "size": 1,
                "media_type": "text/markdown",
            },
        )
    ]


@pytest.mark.slow
def test_sessions_keep_their_own_files_and_a_new_version_is_reported(
    make_agent: MakeAgent, work: Path
) -> None:
    def script(messages: list[dict[str, Any]]) -> Any:
        if messages[-1]["content"][0]["type"] != "text":
            return "Done."
        text = messages[-1]["content"][0]["text"]
        path = "/sandbox/outputs/report.md"
        return {"tool_calls": [("write_file", {"path": path, "content": text})]}

    agent = make_agent(script, sandbox=True, sandbox_working_dir=None, outputs_dir=work / "outputs")

    async def say(text: str, session: str) -> list[StreamEvent]:
        events = [event async for event in agent.run_stream(text, session_id=session)]
        return [event for event in events if event.type == "artifact"]

    async def use() -> list[str]:
        assert len(await say("first", "one")) == 1
        assert len(await say("second", "two")) == 1
        assert len(await say("third", "one")) == 1
        assert len(await say("third", "one")) <= 1  # the same content again
        found = [(await agent.files(session))[0].host_path for session in ("one", "two")]
        return [Path(path).read_text() for path in found if path]

    assert asyncio.run(use()) == ["third", "second"]


HOSTILE = r"""
cd /sandbox/outputs
printf x > $'a\e]0;owned\a\n.txt'; printf x > '\u001b'; printf x > $'\xff'
mkdir -p .git/hooks d; printf evil > .git/hooks/pre-commit; printf evil > .envrc; printf x > HEAD
printf x > d/ok
ln -s /etc/passwd link; ln -s / root; ln -s d inside; mkfifo pipe; ln d/ok hard
printf x > "$(printf '\001%.0s' $(seq 200))"
"""


def test_hostile_names_and_links(make_agent: MakeAgent, work: Path) -> None:
    _, files = collected(make_agent, work, command(HOSTILE))
    (below,) = (work / "outputs").iterdir()
    copied = {path.relative_to(below).as_posix() for path in below.rglob("*") if path.is_file()}
    assert copied == {r"a\u001b]0;owned\u0007\u000a.txt", r"\u005cu001b", "d/ok", "hard"}
    assert not [path for path in (work / "outputs").rglob("*") if path.is_symlink()]
    kept = {str(Path(file.host_path).relative_to(below)) for file in files if file.host_path}
    assert kept == copied
    problems = {file.path: file.problem for file in files if file.host_path is None}
    assert len(problems) == 5
    assert "repository" in problems["/sandbox/outputs/.git/hooks/pre-commit"]
    assert "repository" in problems["/sandbox/outputs/HEAD"]
    assert "direnv" in problems["/sandbox/outputs/.envrc"]
    assert sum("UTF-8" in problem for problem in problems.values()) == 1
    assert sum("255 bytes" in problem for problem in problems.values()) == 1


def test_sizes_are_bounded(
    make_agent: MakeAgent, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.sdk.streaming.outputs.MAX_BYTES", 1_000)
    monkeypatch.setattr("agents.sdk.streaming.outputs.MAX_FILES", 3)
    make = "cd /sandbox/outputs; truncate -s 400M b; printf x > a; printf x > c; printf x > d"
    events, files = collected(make_agent, work, command(make))
    assert [file.path.rpartition("/")[2] for file in files] == ["a", "b", "c"]
    assert "more than 1,000 bytes" in files[1].problem
    assert "problem" in events[1].metadata
    assert not list((work / "outputs").rglob("b"))


@pytest.mark.slow_cases
@pytest.mark.parametrize("target", [".git/hooks", "../secret", "/etc"])
def test_an_outputs_directory_in_the_agent_s_own_directory_leads_nowhere_else(
    make_agent: MakeAgent, work: Path, target: str
) -> None:
    """The agent replaces the directory for copies with a link, and requests copies again."""
    own = make_checkout(work, "checkout")
    (work / "secret").mkdir()
    hooks = contents(own / ".git/hooks")
    evil = ("write_file", {"path": "/sandbox/outputs/pre-commit", "content": "evil"})
    link = command(f"id=$(ls outputs); rm -r outputs/$id; ln -s {target} outputs/$id")
    whole = command(f"rm -rf outputs; ln -s {target} outputs")
    options = {"sandbox_working_dir": str(own), "outputs_dir": own / "outputs"}
    collected(make_agent, work, WRITE, **options)
    assert list((own / "outputs").rglob("report.md"))
    for plant in (link, whole):
        _, files = collected(make_agent, work, plant, evil, **options)
        assert [file.host_path for file in files if file.path.endswith("pre-commit")] == [None]
        assert contents(own / ".git/hooks") == hooks
        assert not [*(work / "secret").iterdir()]


def test_a_project_keeps_them_in_its_data_directory(make_agent: MakeAgent, work: Path) -> None:
    _, files = collected(make_agent, work, WRITE, outputs_dir=None)
    there = DataSettings.now().workspaces / Thread.objects.get().pk / "outputs" / "report.md"
    assert files == [AgentFile("/sandbox/outputs/report.md", 1, str(there))]
    assert not (work / "outputs").exists()


def test_a_harness_reports_and_returns_them(work: Path, transactional_db: None) -> None:
    options = {"sandbox_working_dir": None, "outputs_dir": work / "outputs"}
    harness = create_harness(model=scripted_model(turns(WRITE), "outputs"), options=options)

    async def use() -> list[dict[str, Any]]:
        parts = [part async for part in harness.run_stream("go", session_id="one")]
        (file,) = await harness.files()
        assert file.host_path
        assert Path(file.host_path).read_text() == "R"
        return parts

    with closing(harness):
        parts = asyncio.run(use())
    kinds = [part["type"] for part in parts]
    assert kinds[-1] == "finish"
    (part,) = [part for part in parts if part["type"] == "data-artifact"]
    assert part["data"]["path"] == "/sandbox/outputs/report.md"


def test_without_a_sandbox_they_are_rows(make_agent: MakeAgent) -> None:
    agent = make_agent(turns(("write_file", {"path": "/a.txt", "content": "four"})))
    assert asyncio.run(agent.run("go")) == "Done."
    (file,) = asyncio.run(agent.files())
    assert (file.path, file.size, file.host_path) == ("/a.txt", 4, None)
    assert "get_state()" in file.problem


def test_a_file_is_not_a_directory_for_outputs(make_agent: MakeAgent, work: Path) -> None:
    (work / "file").touch()
    with pytest.raises(SetupError, match="outputs_dir"):
        collected(make_agent, work, WRITE, outputs_dir=work / "file")
    assert not Run.objects.exists()


SCRIPT = """
import asyncio
from vel import create_deep_agent, scripted_model
call = ("write_file", {"path": "/sandbox/outputs/report.md", "content": "R"})
async def main():
    model = scripted_model([{"tool_calls": [call]}, "Done."])
    async with create_deep_agent(model=model) as agent:
        print(await agent.run("Create a report"))
        print(*[file.host_path for file in await agent.files()])
asyncio.run(main())
"""


@pytest.mark.slow
def test_the_outputs_of_a_script_are_there_when_it_has_ended(place: Path, cache: Path) -> None:
    told = [run(SCRIPT, place, cache, fresh).splitlines() for fresh in (True, False)]
    assert [lines[0] for lines in told] == ["Done.", "Done."]
    copies = {Path(lines[1]) for lines in told}
    assert {copy.parent.parent for copy in copies} == {place / "outputs"}
    assert [copy.read_text() for copy in copies] == ["R", "R"]
