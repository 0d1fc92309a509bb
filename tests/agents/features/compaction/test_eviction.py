"""Long tool results: complete in a file, and their head and tail for the model."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from agents.engine.crash_points import CrashPoint
from agents.engine.prompt.conversation import cut_middle
from agents.engine.run_context import DrivenRun
from agents.features.compaction.eviction import _page, readable_text
from agents.features.compaction.result_files import DIRECTORY, _write, file_name, paths_for
from agents.models import Run, StateFile, ToolCall
from agents.services.files import state_files
from agents.settings import ContextSettings
from sandbox.backends import ReadOnly, StateFilesystemBackend
from tests.agents.engine.test_recovery import crash_once
from tests.support.hang import HANG
from tests.support.long_results import long_results
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

BIG = 1_000_000


@pytest.fixture(autouse=True)
def _with_long_results() -> Iterator[None]:
    with long_results():
        yield


def fetch(size: int = BIG, mark: str = "m") -> dict[str, Any]:
    return {"name": "fetch", "input": {"size": size, "mark": mark}}


def a_run(directory: Path, *calls: dict[str, Any], **fields: Any) -> Run:
    """Create a run with these calls, each in its own turn."""
    user = make_user()
    turns = [{"tool_calls": [call]} for call in calls]
    make_agent(user, model=script_file(directory, [*turns, {"text": "Done."}]), **fields)
    return start_run(user)


def results(run: Run) -> list[Any]:
    return [call.result_content for call in ToolCall.objects.filter(run=run).order_by("turn")]


def path_in(result: str) -> str:
    return result.split("The whole is in ")[1].split(" ")[0]


def test_the_complete_result_is_in_a_file_and_the_model_gets_head_and_tail(tmp_path: Path) -> None:
    run = drive_to_end(a_run(tmp_path, fetch()))
    assert run.status == "completed", run.error_message
    (result,) = results(run)
    assert len(result.encode()) < ContextSettings.now().EVICT_BYTES
    path = path_in(result)
    assert path == f"{DIRECTORY}/{file_name('fetch', f'{run.pk}:1:0')}"
    whole = bytes(StateFile.objects.get(thread=run.thread, path=path).content).decode()
    assert len(whole) > BIG
    assert "NEEDLE-m" in whole
    shown = result.split("\n", 1)[1]
    head, _, tail = shown.partition("\n[… ")
    assert whole.startswith(head)
    assert whole.endswith(tail.split("]\n", 1)[1])
    assert "read_file (path, offset, limit, line_offset)" in result
    assert f"{len(whole):,} bytes" in result
    assert len(events(run, "tool.completed")[0]["output"]) < 5_000


def test_a_short_result_stays_as_it_is(tmp_path: Path) -> None:
    run = drive_to_end(a_run(tmp_path, fetch(50_000)))
    assert "NEEDLE-m" in results(run)[0]
    assert not StateFile.objects.exists()


def test_names_are_not_to_be_guessed_and_stay_the_same() -> None:
    one, again = file_name("fetch", "run:1:0"), file_name("fetch", "run:1:0")
    assert one == again != file_name("fetch", "run:1:1")
    with override_settings(SECRET_KEY="another key of the same installation, for this test"):
        assert file_name("fetch", "run:1:0") != one
    assert file_name("../Odd tool\n", "x").startswith("___odd_tool_-")


@pytest.mark.parametrize("point", [CrashPoint.TOOL_DONE, CrashPoint.RESULTS_WRITTEN])
def test_a_crash_leaves_one_file_and_one_result(tmp_path: Path, point: CrashPoint) -> None:
    run = a_run(tmp_path, fetch())
    crash_once(run, point)
    # The file is stored before the result.
    assert StateFile.objects.count() == 1
    run = drive_to_end(run)
    assert run.status == "completed"
    (result,) = results(run)
    assert StateFile.objects.get().path == path_in(result)


def test_reading_the_file_makes_no_other_one(tmp_path: Path) -> None:
    run = a_run(tmp_path, fetch())
    path = f"{DIRECTORY}/{file_name('fetch', f'{run.pk}:1:0')}"
    turns = [
        {"tool_calls": [fetch()]},
        {"tool_calls": [{"name": "read_file", "input": {"path": path, "limit": 10_000}}]},
        {"tool_calls": [{"name": "grep", "input": {"pattern": "words", "path": path}}]},
        {"tool_calls": [{"name": "grep", "input": {"pattern": "NEEDLE", "path": path}}]},
        {"text": "Done."},
    ]
    script_file(tmp_path, turns)
    with override_settings(VEL={**settings.VEL, "EVICT_BYTES": 20_000}):
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    _, read, grep, needle = results(run)
    page = json.loads(read)
    assert page["has_more"] is True
    assert (
        page["note"]
        == f"cut to fit the conversation: continue with offset={page['lines_returned']}"
    )
    assert page["content"].count("\n") + 1 == page["lines_returned"] > 100
    assert len(read.encode()) <= 20_000
    assert len(grep.encode()) <= 20_000
    assert "NEEDLE-m" in needle
    assert StateFile.objects.count() == 1


def test_a_result_of_one_line_is_read_to_its_end(tmp_path: Path) -> None:
    name = f"{DIRECTORY}/{file_name('read_file', 'a')}"
    line = "".join(f'<p class="{number}">' for number in range(3_000))
    found, at = "", 0
    backend = StateFilesystemBackend()
    backend.write_file(name, line)
    for _ in range(10):
        page = backend.read_file(name, 0, 100, at)
        if len(json.dumps(page)) > 20_000:
            page = _page("read_file", page, 20_000)
        assert len(json.dumps(page)) <= 20_000
        found += page["content"].removeprefix("     1 | ").partition("…")[0]
        if not page["has_more"]:
            break
        at = int(page["note"].partition("line_offset=")[2].split()[0])
    assert found == line


def test_a_result_over_the_limit_of_files_is_cut_with_a_note(tmp_path: Path) -> None:
    with override_settings(VEL={**settings.VEL, "RESULT_BYTES": 200_000}):
        run = drive_to_end(a_run(tmp_path, fetch()))
    (result,) = results(run)
    told = re.search(
        r"\(([\d,]+) bytes, of which ([\d,]+) bytes in the middle were too many", result
    )
    assert told is not None
    size, cut = (int(number.replace(",", "")) for number in told.groups())
    assert size - cut == 200_000
    assert len(bytes(StateFile.objects.get().content)) <= 200_100


def test_without_room_for_the_file_the_result_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "MAX_BYTES", 1_500_000)
    run = drive_to_end(a_run(tmp_path, fetch(mark="a"), fetch(mark="b")))
    assert run.status == "completed", run.error_message
    first, second = results(run)
    assert "The whole is in" in first
    assert "The rest was not kept" in second
    assert "no room left" in second
    assert len(second.encode()) < ContextSettings.now().EVICT_BYTES
    assert ToolCall.objects.filter(status="succeeded").count() == 2


def test_something_else_in_the_place_of_the_directory(tmp_path: Path) -> None:
    planted = {"name": "write_file", "input": {"path": DIRECTORY, "content": "mine"}}
    run = drive_to_end(a_run(tmp_path, planted, fetch()))
    path = path_in(results(run)[1])
    assert path.startswith("/sandbox/shared/result-")
    assert len(bytes(StateFile.objects.get(path=path).content)) > BIG


def test_errors_and_other_languages(tmp_path: Path) -> None:
    call = fetch(mark="数豆子")
    call["input"]["error"] = True
    run = drive_to_end(a_run(tmp_path, call))
    (result,) = results(run)
    assert len(result.encode()) < ContextSettings.now().EVICT_BYTES
    assert ToolCall.objects.get().is_error
    assert "NEEDLE-数豆子" in bytes(StateFile.objects.get().content).decode()


def test_the_limit_counts_bytes_and_not_characters(tmp_path: Path) -> None:
    run = drive_to_end(a_run(tmp_path, fetch(50_000, "豆" * 100)))
    (result,) = results(run)
    assert path_in(result) == StateFile.objects.get().path
    assert len(result.encode()) < ContextSettings.now().EVICT_BYTES


@pytest.mark.bubblewrap
@pytest.mark.parametrize("profile", ["full", "sandbox_only"])
def test_in_a_sandbox_commands_find_the_file(tmp_path: Path, profile: str) -> None:
    tool = "execute" if profile == "full" else "execute_in_sandbox"
    command = "grep -c NEEDLE /sandbox/shared/results/*"
    calls = [fetch(), {"name": tool, "input": {"command": command}}]
    run = drive_to_end(a_run(tmp_path, *calls, sandbox=True, profile=profile))
    assert run.status == "completed", run.error_message
    first, second = results(run)
    how = "read_file (path" if profile == "full" else "execute_in_sandbox, as in: sed -n"
    assert how in first
    counted = json.loads(second)["stdout"] if profile == "full" else second
    assert counted.strip() == "1"


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    "plant",
    [
        "ln -s /etc /sandbox/shared/results",
        "ln -s ../outputs /sandbox/shared/results",
        "mkfifo /sandbox/shared/results",
        "mkdir -m 0 /sandbox/shared/results",
    ],
)
def test_a_planted_link_in_place_of_the_directory_is_not_followed(
    tmp_path: Path, plant: str
) -> None:
    planting = {"name": "execute", "input": {"command": plant}}
    looking = {"name": "execute", "input": {"command": "cat /sandbox/shared/result-*.txt | wc -c"}}
    run = drive_to_end(a_run(tmp_path, planting, fetch(), looking, sandbox=True))
    assert run.status == "completed", run.error_message
    _, result, count = results(run)
    path = path_in(result)
    if path.startswith("/sandbox/shared/result-"):
        assert int(json.loads(count)["stdout"]) > BIG
    else:  # root can open the closed directory
        assert "mkdir" in plant
    assert not list(Path("/etc").glob("fetch-*"))


def test_objects_become_texts_with_lines() -> None:
    assert readable_text({"exit_code": 0, "stdout": "a\nb\n" * 100}).startswith(
        '{"exit_code":0}\n\nstdout:\na\nb\n'
    )
    assert readable_text({"rows": [[1, 2], [3, 4]]}).count("\n") > 5
    assert readable_text("as it is") == "as it is"


def test_cutting_never_makes_broken_text() -> None:
    for limit in range(10, 60):
        cut = cut_middle("数豆子🫘" * 30, limit)
        assert "�" not in cut
        cut.encode()


def test_an_agent_that_may_not_change_files_gets_none() -> None:
    files = ReadOnly(StateFilesystemBackend(), "read-only for this subagent.")
    path, problem = _write(lambda: files, paths_for("fetch", "x"), b"whole")
    assert path == ""
    assert "read-only for this subagent" in problem


def test_equal_calls_with_long_results_are_a_repetition(tmp_path: Path) -> None:
    run = drive_to_end(a_run(tmp_path, *[fetch()] * 3))
    assert len({path_in(result) for result in results(run)}) == 3
    (stuck,) = events(run, "guard.stuck")
    assert stuck["count"] == 3


@pytest.mark.parametrize("to_its_end", [True, False])
def test_a_file_is_complete_before_a_cancelled_call_ends(to_its_end: bool) -> None:
    """A call that has ended keeps its result, so the engine gets it."""
    ended = []

    async def cancel() -> Any:
        started, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def write() -> str:
            loop.call_soon_threadsafe(started.set)
            assert go_on.wait(HANG)
            ended.append("file")
            return "result"

        with ThreadPoolExecutor(1) as threads:
            run = object.__new__(DrivenRun)
            run._threads = threads
            task = asyncio.create_task(run.in_thread(write, to_its_end=to_its_end))
            await started.wait()
            task.cancel()
            loop.call_soon(go_on.set)
            return (await asyncio.wait([task]), task)[1]

    task = asyncio.run(cancel())
    assert ended == ["file"]
    assert task.cancelled() is not to_its_end
    assert to_its_end is False or task.result() == "result"
