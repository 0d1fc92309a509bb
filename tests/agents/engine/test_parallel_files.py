"""Shared files of subagents that work at the same time, and lost updates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.features.subagents.models import Subagent
from agents.models import Epoch, Run, StateFile, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.services.files.thread_files import readable_files
from tests.agents.engine.test_subagent_files import turn
from tests.sandbox.places import AS_ROOT, reachable_directory
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.usefixtures("frequent_looks"),
]

OWN_WORKSPACE, OWN_DIRECTORY, ROWS = "workspaces of Vel", "a directory of the caller", "rows"


@pytest.fixture
def own(request: pytest.FixtureRequest) -> Iterator[Path]:
    with reachable_directory() as place:
        own = place / "project"
        own.mkdir()
        if AS_ROOT:
            os.chown(own, 65534, 65534)
        yield own


def parallel(
    tmp_path: Path, own: Path, place: str, *before: Any, **calls: list[Any]
) -> tuple[Run, dict[str, list[ToolCall]]]:
    """Run a parent that makes the calls `before` and then gives each named subagent a task.

    Returns the parent's run and the calls of each subagent, which work at the same time.
    """
    user = make_user()
    tasks = [{"subagent": name, "task": f"Work as {name}."} for name in calls]
    turns = [turn(*before)] if before else []
    turns += [turn(("parallel_tasks", {"tasks": tasks})), {"text": "Done."}]
    model = script_file(tmp_path, turns)
    agent = make_agent(user, model=model, sandbox=place != ROWS)
    children = []
    for name, given in calls.items():
        play = script_file(tmp_path, [*(turn(one) for one in given), {"text": "."}], name)
        children.append(Subagent(name=name, description="Works.", model=play))
    save_agent(agent, related={"subagents": children})
    where = {"workspace_path": str(own)} if place == OWN_DIRECTORY else {}
    run = drive_to_end(start_run(user, **where))
    assert run.status == "completed", run.error_message
    made = {
        name: list(ToolCall.objects.filter(run=child).order_by("turn", "position"))
        for name, child in children_of(run).items()
    }
    return run, made


def children_of(run: Run) -> dict[str, Run]:
    return {child.spec["subagent"]: child for child in Run.objects.filter(parent=run)}


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": path, "content": content})


def read(path: str) -> tuple[str, dict[str, Any]]:
    return ("read_file", {"path": path})


SHARED_PATHS = [
    (OWN_DIRECTORY, "note.txt"),
    (OWN_DIRECTORY, "/sandbox/shared/note.txt"),
    (OWN_WORKSPACE, "/sandbox/shared/note.txt"),
    (OWN_WORKSPACE, "/sandbox/outputs/note.txt"),
    (ROWS, "/note.txt"),
]


@pytest.mark.parametrize(("place", "path"), SHARED_PATHS)
def test_the_second_writer_of_a_new_file_is_refused_until_it_has_read_it(
    tmp_path: Path, own: Path, place: str, path: str
) -> None:
    run, made = parallel(tmp_path, own, place, one=[write(path, "one")], two=[write(path, "two")])
    codes = {name: calls[0].code for name, calls in made.items()}
    assert sorted(codes.values()) == ["", "file_error"]
    (refused,) = [calls[0] for calls in made.values() if calls[0].code]
    assert "another agent has used this file since you started" in str(refused.result)
    (winner,) = [name for name, code in codes.items() if not code]
    files = readable_files(run.thread, in_workspace=place != ROWS)
    assert files.read_bytes(path, 10) == winner.encode()


def test_an_agent_that_has_read_the_file_may_replace_it(tmp_path: Path, own: Path) -> None:
    path = "/note.txt"
    wanted = [write(path, "x"), read(path), write(path, "y")]
    _, made = parallel(tmp_path, own, ROWS, one=wanted, two=[read("/other")])
    assert [call.code for call in made["one"]] == ["", "", ""]


def test_a_file_from_before_is_replaced_unread_as_long_as_no_other_uses_it(
    tmp_path: Path, own: Path
) -> None:
    path = "/plan.txt"
    run, made = parallel(
        tmp_path,
        own,
        ROWS,
        write(path, "the parent's"),
        one=[write(path, "one")],
        two=[write("/other.txt", "two")],
    )
    assert [calls[0].code for calls in made.values()] == ["", ""]
    assert bytes(StateFile.objects.get(thread=run.thread, path=path).content) == b"one"


def test_each_has_a_file_of_this_name_in_its_own_workspace(tmp_path: Path, own: Path) -> None:
    calls = {name: [write("note.txt", name)] for name in ("one", "two")}
    run, made = parallel(tmp_path, own, OWN_WORKSPACE, **calls)
    assert [calls[0].code for calls in made.values()] == ["", ""]
    for name, child in children_of(run).items():
        files = readable_files(child.thread, in_workspace=True)
        assert files.read_bytes("note.txt", 10) == name.encode()


@pytest.mark.parametrize(
    ("place", "parent", "child", "untrue"),
    [
        (
            OWN_WORKSPACE,
            "Each has its own workspace, but explore, plan see yours.",
            "The agent that asks you does not see your /sandbox/workspace/.",
            "the same files",
        ),
        (
            OWN_DIRECTORY,
            "They work in the same directories as you, also in /sandbox/workspace/",
            "Other agents may be using the same files, also in /sandbox/workspace/",
            "its own workspace",
        ),
        (
            ROWS,
            "They have the same files as you",
            "Other agents may be using the same files",
            "/sandbox/",
        ),
    ],
)
def test_the_prompts_say_which_files_are_shared(
    tmp_path: Path, own: Path, place: str, parent: str, child: str, untrue: str
) -> None:
    run, _ = parallel(tmp_path, own, place, one=[])
    (only,) = children_of(run).values()
    for thread, says in ((run.thread, parent), (only.thread, child)):
        prompt = Epoch.objects.get(thread=thread).head["system"]
        assert says in prompt
        section = prompt[prompt.index("## Subagents" if says == parent else "## Your task") :]
        assert untrue not in section.partition("\n## ")[0]
