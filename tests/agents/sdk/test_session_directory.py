"""A session of a program keeps its directory at every door; another directory is refused."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agents.models import AgentVersion, Run
from agents.services.errors import Conflict
from tests.sandbox.places import AS_ROOT, reachable_directory
from vel import (
    DeepAgent,
    RunInterrupted,
    VelHarness,
    create_coding_harness,
    create_deep_agent,
    create_harness,
    create_research_harness,
    scripted_model,
)

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.django_db(transaction=True),
]

MODEL = scripted_model(
    [{"tool_calls": [("execute", {"command": "echo x > note.txt"})]}, "Done."], "session-directory"
)
Agent = DeepAgent | VelHarness
Make = Callable[[Path | None], Agent]
ASKS = {"interrupt_on": {"execute": True}}


def deep_agent(place: Path | None) -> Agent:
    where = {} if place is None else {"sandbox_working_dir": str(place)}
    return create_deep_agent(MODEL, name="vel-harness", **where)


def harness(place: Path | None) -> Agent:
    return create_harness(model=MODEL, working_directory=place)


def coding_harness(place: Path | None) -> Agent:
    return create_coding_harness(place, model=MODEL)


def research_harness(place: Path | None) -> Agent:
    return create_research_harness(model=MODEL, working_directory=place)


DOORS = [deep_agent, harness, coding_harness, research_harness]


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    with reachable_directory() as place:
        found = [place / name for name in ("projA", "projB")]
        for one in found:
            one.mkdir()
            if AS_ROOT:
                os.chown(one, 65534, 65534)
        monkeypatch.chdir(found[1])
        yield found


def run(agent: Agent, session: str = "main") -> str:
    with closing(agent):
        return asyncio.run(agent.run("write note.txt", session_id=session))


async def streamed(agent: Agent) -> None:
    async for _ in agent.run_stream("write note.txt", session_id="main"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("make", DOORS)
def test_a_session_of_another_directory_is_refused(places: list[Path], make: Make) -> None:
    old, new = places
    run(coding_harness(old))
    (old / "note.txt").unlink()
    before = Run.objects.count(), AgentVersion.objects.count()
    for work in (run, lambda agent: asyncio.run(streamed(agent))):
        with closing(make(new)) as agent, pytest.raises(Conflict) as refused:
            work(agent)
        assert f"works in {old}, not in {new}" in refused.value.message
    assert (Run.objects.count(), AgentVersion.objects.count()) == before
    assert not [*old.iterdir(), *new.iterdir()]
    assert run(make(new), session="other") == "Done."
    assert (new / "note.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("make", DOORS)
def test_a_session_continues_where_no_directory_is_named(places: list[Path], make: Make) -> None:
    old, new = places
    run(coding_harness(old))
    (old / "note.txt").unlink()
    assert run(make(None)) == "Done."
    assert (old / "note.txt").exists()
    assert not (new / "note.txt").exists()
    assert run(make(None), session="new") == "Done."
    default = new / "workspace" if make is deep_agent else new
    assert (default / "note.txt").exists()


@pytest.mark.slow
def test_a_request_is_not_approved_through_an_agent_of_another_directory(
    places: list[Path],
) -> None:
    old, new = places
    with pytest.raises(RunInterrupted):
        run(create_harness(model=MODEL, working_directory=old, options=ASKS))

    async def resume(agent: VelHarness) -> None:
        async for _ in agent.resume("main"):
            pass

    for place, refused in ((new, True), (old, False)):
        with closing(create_harness(model=MODEL, working_directory=place, options=ASKS)) as agent:
            if refused:
                with pytest.raises(Conflict, match="not in"):
                    asyncio.run(resume(agent))
            else:
                asyncio.run(resume(agent))
        assert (old / "note.txt").exists() is not refused


@pytest.mark.slow
def test_a_session_keeps_its_sandbox(places: list[Path]) -> None:
    old, _ = places
    run(coding_harness(old))
    without = create_deep_agent(MODEL, name="vel-harness", sandbox=False)
    with pytest.raises(Conflict, match=f"works in a sandbox, with its files in {old}"):
        run(without)
    plain = create_deep_agent(scripted_model(["Hello."]), name="vel-harness", sandbox=False)
    assert run(plain, session="rows") == "Hello."
    with pytest.raises(Conflict, match="works without a sandbox"):
        run(coding_harness(None), session="rows")
