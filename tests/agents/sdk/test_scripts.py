"""Scripts without a project: own database, no environment, killed and resumed."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.sdk.scripts import ROOT, cache, place, run, started
from tests.support.hang import HANG
from tests.support.migrated import copy_sqlite

__all__ = ["cache", "place"]

AGENT = """
import asyncio, os, sys, threading
from vel import create_deep_agent, scripted_model, tool, SetupError

@tool(requires_approval=True)
def send(to: str) -> str:
    "Send a letter."
    with open("sent.txt", "a") as file:
        file.write(to + "\\n")
    return "sent to " + to

SCRIPT = [{"text": "Sending.", "tool_calls": [("send", {"to": "bob"})]}, "Sent."]

def make(**options):
    options.setdefault("persistence_path", "agent.sqlite3")
    return create_deep_agent(model=scripted_model(SCRIPT), tools=[send], sandbox=False, **options)

async def tell(events):
    async for event in events:
        print(event.type, event.metadata.get("tool_name", ""), flush=True)
"""

ASKS_AND_STAYS = (
    AGENT
    + """
async def main():
    await tell(make().run_stream("Write to Bob", session_id="letters"))
    print("waiting", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""
)

GOES_ON = (
    AGENT
    + """
async def main():
    agent = make()
    print([item.metadata["input"] for item in await agent.pending("letters")])
    await tell(agent.resume("letters"))
asyncio.run(main())
print(*sorted(thread.name for thread in threading.enumerate() if "database" in thread.name))
"""
)


@pytest.mark.slow
def test_a_script_does_not_start_a_run_on_a_full_disk(place: Path, cache: Path) -> None:
    program = f"""{AGENT}
from agents.services.errors import NoSpace
try:
    asyncio.run(make().run("Write to Bob"))
except NoSpace as error:
    print(error)
"""
    out = run(program, place, cache, VEL_RESERVE_BYTES="1" + "0" * 18)
    assert "1,000,000,000,000 MB are reserved for active runs" in out


@pytest.mark.slow
def test_an_interrupt_outlives_a_killed_process(place: Path, cache: Path) -> None:
    told = []
    with started(ASKS_AND_STAYS, place, cache) as (process, output):
        while "waiting\n" not in told:
            told.append(output.readline())
            assert told[-1], "it ended: see its standard error"
        process.send_signal(signal.SIGKILL)
        assert process.wait(HANG) == -signal.SIGKILL
    assert "interrupt send\n" in told
    assert not (place / "sent.txt").exists()
    assert (place / "agent.sqlite3").stat().st_mode & 0o077 == 0
    out = run(GOES_ON, place, cache)
    assert out.splitlines()[0] == "[{'to': 'bob'}]"
    assert out.splitlines()[-2] == "end "
    assert "tool_result send" in out
    assert (place / "sent.txt").read_text() == "bob\n"


DRIVEN = (
    AGENT
    + """
@tool(effect="read")
def look() -> str:
    "Look."
    print("looking", flush=True)
    if os.environ.get("HANG"):
        sys.stdin.read()
    return "seen"

async def main():
    script = [{"tool_calls": [("look", {})]}, "Looked."]
    agent = create_deep_agent(
        model=scripted_model(script), tools=[look], sandbox=False, persistence_path="a.sqlite3"
    )
    if os.environ.get("HANG"):
        await agent.run("Look", session_id="s")
    else:
        await tell(agent.resume("s"))
        print(await agent.run("Again", session_id="s"))
asyncio.run(main())
"""
)


@pytest.mark.slow
def test_a_killed_run_continues_after_its_lease(place: Path, cache: Path) -> None:
    with started(DRIVEN, place, cache, HANG="1") as (process, output):
        assert output.readline() == "looking\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(HANG) == -signal.SIGKILL
    out = run(DRIVEN, place, cache)
    assert out.splitlines()[-3:] == ["end ", "looking", "Looked."]


OLD_DATABASE = (
    AGENT
    + """
async def main():
    try:
        await make().run("x")
    except SetupError as error:
        print("refused:", error)
asyncio.run(main())
"""
)


def test_a_database_of_a_development_version_is_refused(place: Path, cache: Path) -> None:
    copy_sqlite(place / "agent.sqlite3")
    with closing(sqlite3.connect(place / "agent.sqlite3")) as database, database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('agents', '0002_sandbox_options', '2026-11-22')"
        )
    before = (place / "agent.sqlite3").read_bytes()
    out = run(OLD_DATABASE, place, cache)
    assert out.startswith("refused: ")
    assert "development version before 0.1.0" in out
    assert (place / "agent.sqlite3").read_bytes() == before


TOOLS_FIRST = """
import asyncio
from vel import *

tools = create_database_tools(DatabaseBackend({"shop": "sqlite:///shop.sqlite3"}))
print(*(tool.name for tool in tools))
agent = create_deep_agent(
    scripted_model(["Done."]), sandbox=False, persistence_path="agent.sqlite3"
)
print(asyncio.run(agent.run("Go")))
agent.close()
"""


@pytest.mark.slow
def test_tools_of_a_database_can_be_made_before_the_agent(place: Path, cache: Path) -> None:
    """They do not choose the database of Vel."""
    names, answer = run(TOOLS_FIRST, place, cache, fresh=True).splitlines()
    assert names == "execute_sql get_schema list_tables describe_table"
    assert answer == "Done."
    assert (place / "agent.sqlite3").exists()


TWO_PATHS = (
    AGENT
    + """
from vel import RunInterrupted

async def main():
    for path in ("agent.sqlite3", None, "other.sqlite3"):
        try:
            await make(name=f"agent-{path}", persistence_path=path).run("Write")
        except RunInterrupted:
            print(path, "runs")
        except SetupError as error:
            print("refused:", error)

asyncio.run(main())
"""
)


def test_a_second_database_is_refused_with_both_ways_on(place: Path, cache: Path) -> None:
    *runs, refused = run(TWO_PATHS, place, cache).splitlines()
    assert runs == ["agent.sqlite3 runs", "None runs"]
    assert "other.sqlite3'" in refused
    assert f"already use {place / 'agent.sqlite3'}" in refused
    assert "the same path" in refused
    assert "in another process" in refused
    assert not (place / "other.sqlite3").exists()


ONE_PROCESS = (
    AGENT
    + """
async def refused(**options):
    try:
        await make(**options).run("x")
    except SetupError as error:
        print("refused:", error)

async def main():
    await refused(persistence_path="no/such/place.db")
    with open("notes.txt", "w") as file:
        file.write("These are notes.")
    await refused(persistence_path="notes.txt")
    agent = make(persistence_path=None)
    try:
        await agent.run("Write", session_id="s")
    except Exception as error:
        print(type(error).__name__)
    await refused(persistence_path="other.sqlite3")
    bare = create_deep_agent(sandbox=False)
    try:
        await bare.run("x")
    except SetupError as error:
        print("refused:", error)
    # Nothing was closed: the end of the process does that.

asyncio.run(main())
asyncio.run(make(persistence_path=None, name="second").aclose())
print([name for name in os.listdir(".") if "sqlite" in name])
"""
)


def test_a_throw_away_database_leaves_nothing(place: Path, cache: Path) -> None:
    out = run(ONE_PROCESS, place, cache, fresh=True)
    assert "create the directory" in out
    assert "notes.txt is not a SQLite database" in out
    assert "RunInterrupted" in out
    assert "a process has only one database" in out
    assert "ANTHROPIC_API_KEY" in out
    assert "scripted" in out
    assert out.splitlines()[-1] == "[]"
    assert not (place / "data").exists()


@pytest.mark.slow
def test_two_examples_as_programs_from_another_directory(place: Path, cache: Path) -> None:
    out = run(program_of("basic"), place, cache)
    assert "[write_file]" in out
    assert out.splitlines()[-1] == "Files: /haiku.md"
    out = run(program_of("decision_workflow"), place, cache, DECISION="5000")
    assert '[place_order] {"vendor":"Acme","amount":5000' in out


def program_of(example: str) -> str:
    path = str(ROOT / "examples" / f"{example}.py")
    return f"import runpy; runpy.run_path({path!r}, run_name='__main__')"
