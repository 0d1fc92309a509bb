"""The changed files of each call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.models import Run, WorkspaceSnapshot
from agents.services.files.changes import changes_between, steps_of_turn
from agents.services.files.snapshots import snapshot_store
from agents.settings import DataSettings
from tests.agents.snapshots.driven import area, calls, command, edit, play, read, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]


def rows(run: Run) -> list[WorkspaceSnapshot]:
    return list(WorkspaceSnapshot.objects.filter(thread=run.thread_id).order_by("pk"))


def changed(row: WorkspaceSnapshot) -> dict[str, str]:
    found = changes_between(row.thread_id, row.base, row.manifest)
    return {file.path.removeprefix("/sandbox/"): file.what for file in found.files}


def test_each_call_has_its_own_changes(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        write("notes.md", "one\ntwo\n"),
        read("notes.md"),
        edit("notes.md", "two", "2"),
        command("mkdir d; echo hello > d/x; rm notes.md; echo out > ../outputs/report"),
        command("true"),
        write("/sandbox/shared/for-others", "x"),
    )
    assert [call.status for call in calls(run)] == ["succeeded"] * 6
    found = rows(run)
    assert [(row.turn, row.position, row.cause) for row in found] == [
        (1, 0, "call"),
        (3, 0, "call"),
        (4, 0, "call"),
        (6, 0, "call"),
    ]
    assert [changed(row) for row in found] == [
        {"workspace/notes.md": "added"},
        {"workspace/notes.md": "changed"},
        {
            "outputs/report": "added",
            "workspace/d": "added",
            "workspace/d/x": "added",
            "workspace/notes.md": "deleted",
        },
        {"shared/for-others": "added"},
    ]
    assert [(row.added, row.changed, row.deleted) for row in found] == [
        (1, 0, 0),
        (0, 1, 0),
        (3, 0, 1),
        (1, 0, 0),
    ]
    (file,) = changes_between(run.thread_id, *steps_of_turn(run.thread_id, run.id, 3)).files
    assert file.diff == "@@ -1,2 +1,2 @@\n one\n-two\n+2"
    assert (file.size_before, file.size_after) == (8, 6)


def test_changes_by_a_person_between_runs_do_not_belong_to_a_call(tmp_path: Path) -> None:
    run = play(tmp_path, write("a", "a"))
    (area(run) / "from-outside").write_text("x")
    later = play(tmp_path, write("b", "b"), thread=run.thread)
    found = rows(run)
    assert [(row.cause, row.run_id) for row in found] == [
        ("call", run.id),
        ("outside", None),
        ("call", later.id),
    ]
    assert changed(found[1]) == {"workspace/from-outside": "added"}
    assert changed(found[2]) == {"workspace/b": "added"}


def test_read_only_calls_take_no_snapshot(tmp_path: Path) -> None:
    run = play(tmp_path, ("ls", {"path": "."}))
    assert rows(run) == []
    assert not snapshot_store(run.thread_id).directory.exists()


@pytest.mark.slow
def test_a_call_that_fails_half_way_has_its_changes_too(tmp_path: Path) -> None:
    run = play(tmp_path, ("execute", {"command": "echo x > made; sleep 600", "timeout": 1}))
    assert calls(run)[0].code == "timeout"
    assert [changed(row) for row in rows(run)] == [{"workspace/made": "added"}]


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_row_commits_with_the_result_or_not_at_all(tmp_path: Path) -> None:
    """If a driver dies between the call and its result, the next driver records the change."""
    seen: list[CrashPoint] = []

    def die_once(point: CrashPoint) -> None:
        if point is CrashPoint.TOOL_DONE and len(seen) == 1:
            seen.append(point)
            raise RuntimeError("the driver fails here")
        if point is CrashPoint.TOOL_DONE:
            seen.append(point)

    crash_points.crash_at(die_once)
    try:
        run = play(tmp_path, write("a", "a"), write("b", "b"), ends="failed")
    finally:
        crash_points.crash_at(None)
    assert [changed(row) for row in rows(run)] == [{"workspace/a": "added"}]
    assert (area(run) / "b").exists()
    play(tmp_path, thread=run.thread)
    play(tmp_path, write("c", "c"), thread=run.thread)
    assert [(row.cause, changed(row)) for row in rows(run)[1:]] == [
        ("outside", {"workspace/b": "added"}),
        ("call", {"workspace/c": "added"}),
    ]


def test_a_failing_store_fails_no_call(tmp_path: Path) -> None:
    DataSettings.now().snapshots.mkdir(parents=True, exist_ok=True)
    run = play(tmp_path, ("ls", {"path": "."}))
    snapshot_store(run.thread_id).directory.write_text("no directory")
    try:
        later = play(tmp_path, command("echo x > a"), thread=run.thread)
    finally:
        snapshot_store(run.thread_id).directory.unlink()
    assert calls(later)[0].status == "succeeded"
    assert (area(run) / "a").read_text() == "x\n"
    assert rows(run) == []


@pytest.mark.both_databases
def test_old_snapshots_go(tmp_path: Path) -> None:
    run = play(tmp_path, *(write("a", f"version {number}") for number in range(6)))
    store = snapshot_store(run.thread_id)
    for path in (store.directory / "manifests").iterdir():
        os.utime(path, (0, 0))
    with override_settings(VEL={**settings.VEL, "SNAPSHOT_TURNS": 2}):
        play(tmp_path, write("b", "b"), thread=run.thread)
    kept = rows(run)
    assert [row.turn for row in kept] == [5, 6, 1]
    assert changed(kept[0]) == {"workspace/a": "changed"}
    objects = [path for path in (store.directory / "objects").rglob("*") if path.is_file()]
    contents = {path.read_text() for path in objects}
    assert contents == {"version 3", "version 4", "version 5", "b"}


def test_snapshots_can_be_turned_off(tmp_path: Path) -> None:
    with override_settings(VEL={**settings.VEL, "SNAPSHOT_TURNS": 0}):
        run = play(tmp_path, command("echo x > a"))
    assert rows(run) == []
