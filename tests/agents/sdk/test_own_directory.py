"""An agent of a program in the caller's directory: protected files and the report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents.sdk.conftest import MakeAgent
from tests.sandbox.own_directory.checkouts import make_checkout
from tests.sandbox.places import reachable_directory
from vel import (
    DeepAgent,
    SetupError,
    StreamEvent,
    VelHarness,
    create_coding_harness,
    create_deep_agent,
    create_harness,
    scripted_model,
)

pytestmark = pytest.mark.bubblewrap

COMMAND = "echo new > .github; echo evil > .git/hooks/pre-commit; echo x > Makefile; echo y > a.py"
TURNS = [{"text": "", "tool_calls": [("execute", {"command": COMMAND})]}, "Done."]


@pytest.fixture
def project() -> Iterator[Path]:
    with reachable_directory() as place:
        yield make_checkout(place)


def report(make_agent: MakeAgent, project: Path, **options: object) -> list[str]:
    """Return the paths in the report of a run in the directory."""
    agent = make_agent(TURNS, sandbox=True, sandbox_working_dir=str(project), **options)

    async def run() -> list[StreamEvent]:
        return [event async for event in agent.run_stream("work", session_id="one")]

    events = asyncio.run(run())
    assert events[-1].type == "end"
    found = [event.metadata for event in events if event.type == "runs_outside"]
    return [change["path"] for metadata in found for change in metadata["changes"]]


def test_the_report_is_an_event_of_the_stream(make_agent: MakeAgent, project: Path) -> None:
    assert report(make_agent, project) == [".github.vel-blocked", "Makefile"]
    assert not (project / ".git/hooks/pre-commit").exists()
    assert (project / "a.py").exists()


def test_options_open_and_protect_files(make_agent: MakeAgent, project: Path) -> None:
    options = {"sandbox_allow_write": [".github"], "sandbox_protect": ["Makefile"]}
    assert report(make_agent, project, **options) == [".github", "Makefile.vel-blocked"]
    assert (project / ".github").read_text() == "new\n"


def test_skills_in_the_directory_are_used_and_protected(
    make_agent: MakeAgent, project: Path
) -> None:
    skill = project / "skills/beans/SKILL.md"
    other = project / "src/skills/notes.md"
    for file in (skill, other):
        file.parent.mkdir(parents=True)
        file.write_text("---\nname: beans\ndescription: Counts beans.\n---\nCount twice.\n")
    for path in [*(project / "skills").rglob("*"), project / "skills", other.parent, other]:
        path.chmod(0o777)
    command = "mv skills old; rm -r skills; echo evil > skills/beans/SKILL.md; echo x > skills/new"
    calls = [
        ("execute", {"command": f"{command}; echo y > src/skills/notes.md"}),
        ("write_file", {"path": "skills/beans/SKILL.md", "content": "evil"}),
        ("load_skill", {"skill_name": "beans"}),
    ]
    turns = [{"tool_calls": calls}, "Done."]
    agent = make_agent(
        turns, sandbox=True, sandbox_working_dir=project, skill_dirs=[skill.parents[1]]
    )

    async def run() -> list[StreamEvent]:
        events = [event async for event in agent.run_stream("work", session_id="one")]
        events += [event async for event in agent.run_stream("again", session_id="one")]
        return [event for event in events if event.type == "tool_result"]

    results = asyncio.run(run())
    assert sorted(path.name for path in (project / "skills").rglob("*")) == ["SKILL.md", "beans"]
    assert other.read_text() == "y\n"
    assert ["Count twice." in result.content for result in results].count(True) == 2


def test_a_model_that_follows_the_advice_for_wrong_paths_keeps_its_files_apart(
    make_agent: MakeAgent, project: Path
) -> None:
    """The model writes to paths of another machine, and then exactly where the errors tell it."""
    (project / "sub").mkdir(mode=0o777)
    (project / "sub").chmod(0o777)
    written = {
        "/reports/2024/q4.md": "old",
        "/reports/2025/q4.md": "new",
        f"{project}/sub/q4.md": "mine",
    }

    def script(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
        results = [block for block in messages[-1]["content"] if block["type"] == "tool_result"]
        advised = [re.findall(r"Use '([^']+)'", str(block["content"])) for block in results]
        if results and not all(advised):
            return "Done."
        paths = [path for (path,) in advised] or list(written)
        files = zip(paths, written.values(), strict=True)
        calls = [("write_file", {"path": path, "content": text}) for path, text in files]
        return {"tool_calls": calls}

    agent = make_agent(script, sandbox=True, sandbox_working_dir=project)
    assert asyncio.run(agent.run("Write the reports")) == "Done."
    found = {str(path.relative_to(project)): path.read_text() for path in project.rglob("q4.md")}
    assert found == {
        "reports/2024/q4.md": "old", "reports/2025/q4.md": "new", "sub/q4.md": "mine",
    }  # fmt: skip


def test_a_pattern_that_cannot_match_is_refused(make_agent: MakeAgent, project: Path) -> None:
    with pytest.raises(SetupError, match="sandbox_allow_write"):
        report(make_agent, project, sandbox_allow_write=["/etc/passwd"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", ["deep agent", "harness", "coding harness"])
def test_a_working_directory_that_does_not_exist_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    monkeypatch.chdir(project)
    missing, model = project / "no" / "such", scripted_model(["Done."])
    agent: DeepAgent | VelHarness
    option = "sandbox_working_dir" if door == "deep agent" else "working_directory"
    if door == "deep agent":
        agent = create_deep_agent(model, sandbox_working_dir=str(missing))
    elif door == "harness":
        agent = create_harness(model=model, working_directory="no/such")
    else:
        agent = create_coding_harness(missing, model=model)
    with closing(agent), pytest.raises(SetupError, match=f"^{option}: {missing} does not exist"):
        asyncio.run(agent.run("work"))
    assert not (project / "no").exists()


def test_the_default_directory_is_made(
    make_agent: MakeAgent, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    agent = make_agent(TURNS, sandbox=True)
    assert asyncio.run(agent.run("work")) == "Done."
    assert (project / "workspace" / "a.py").read_text() == "y\n"
