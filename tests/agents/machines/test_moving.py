"""A thread's files move with it: to its host, and away from dead and drained hosts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agents.models import Machine, Message, Run, Thread, WorkspaceSnapshot
from agents.services.errors import Conflict, NotFound
from agents.services.machines.actions import declare_dead, machine_states, set_draining
from agents.services.thread_transfer import sending
from tests.agents.snapshots.driven import command, play, write
from tests.agents.snapshots.test_closed_trees import CLOSE, SHOW, assert_shown
from tests.support.machines import Machines, keep_alive, make_silent, stored
from tests.support.runs import drive_to_end, events, running_worker, start_run, wait_until
from velproject.cli.main import run_command_line

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]


def fresh(run: Run) -> Thread:
    return Thread.objects.get(pk=run.thread_id)


def told(run: Run) -> str:
    run.refresh_from_db()
    notes = Message.objects.filter(run=run, role="user", turn__gt=0)
    return run.opening_note + "".join(note.text for note in notes)


@pytest.mark.slow
def test_a_thread_stays_on_the_host_that_drove_it_first(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    thread = fresh(run)
    assert thread.host == "a"
    assert (machines.workspace("a", thread) / "notes.md").read_text() == "one"
    with machines.on("b"):
        later = start_run(User.objects.get(), thread=thread.pk)
        other = start_run(User.objects.get())
        with running_worker():
            wait_until(lambda: Run.objects.get(pk=other.pk).status == "completed")
            later.refresh_from_db()
            assert later.status == "queued"
    with machines.on("a"):
        assert drive_to_end(later).status == "completed"
    assert not machines.workspace("b", thread).exists()


@pytest.mark.slow
def test_a_dead_hosts_threads_continue_from_their_last_snapshot(
    machines: Machines, tmp_path: Path
) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"), command("mkdir -p d/e; echo 2 > d/e/two"))
    thread = fresh(run)
    (machines.workspace("a", thread) / "unsaved").write_text("by nobody's call")
    with machines.on("b"):
        make_silent("a")
        assert declare_dead("a") == 1
        thread = fresh(run)
        assert (thread.host, thread.placement, thread.lost_host) == ("", 1, "a")
        later = play(tmp_path, command("cat notes.md d/e/two; ls"), thread=thread)
    assert fresh(run).host == "b"
    found = machines.workspace("b", thread)
    assert sorted(path.name for path in found.iterdir()) == ["d", "notes.md"]
    (moved,) = events(later, "workspace.moved")
    assert (moved["host"], moved["lost_host"], moved["turn"]) == ("b", "a", 2)
    assert moved["is_last_kept"] is True
    assert "failed" in told(later)
    assert "after the last change that was saved" in told(later)


@pytest.mark.slow
def test_the_move_is_reported_once(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        first = play(tmp_path, command("cat notes.md"), thread=run.thread)
        second = play(tmp_path, command("cat notes.md"), thread=run.thread)
    assert "failed" in told(first)
    assert told(second) == ""
    assert not events(second, "workspace.moved")


@pytest.mark.slow
def test_a_host_that_returns_uses_no_old_files(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        play(tmp_path, write("b.md", "of b"), thread=run.thread)
        make_silent("b")
        declare_dead("b")
    thread = fresh(run)
    (machines.workspace("a", thread) / "notes.md").write_text("poisoned meanwhile")
    with machines.on("a") as data:
        back = play(tmp_path, command("cat notes.md b.md > both"), thread=thread)
    assert (machines.workspace("a", thread) / "both").read_text() == "oneof b"
    assert fresh(run).host == "a"
    (aside,) = (data / "set-aside").iterdir()
    assert (aside / "workspace/notes.md").read_text() == "poisoned meanwhile"
    assert events(back, "workspace.moved")[0]["lost_host"] == "b"


def test_a_living_host_is_not_declared_dead(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    with machines.on("b"):
        with pytest.raises(Conflict, match="heartbeat"):
            declare_dead("a")
        with pytest.raises(NotFound, match="Known: a"):
            declare_dead("c")
    assert fresh(run).host == "a"


@pytest.mark.slow
def test_a_missing_snapshot_is_reported(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, command("true"))
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        later = play(tmp_path, command("ls"), thread=run.thread)
    assert "none had been saved" in told(later)


@pytest.mark.parametrize("what", ["manifests", "objects"])
def test_a_changed_snapshot_is_refused(machines: Machines, tmp_path: Path, what: str) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    (row,) = WorkspaceSnapshot.objects.all()
    assert row.is_stored
    top = machines.directory / "storage" / "snapshots" / run.thread_id / what
    for path in top.iterdir():
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        later = play(tmp_path, command("ls"), thread=run.thread, ends="failed")
    assert later.error_code == "files_not_restored"
    assert "damaged" in later.error_message
    assert not machines.workspace("b", run.thread).joinpath("notes.md").exists()


def test_a_drained_host_hands_over_all_files(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
        thread = fresh(run)
        (machines.workspace("a", thread) / "unsaved").write_text("by nobody's call")
        (machines.workspace("a", thread) / "large").write_bytes(b"x" * 17 * 1024**2)
        (machines.workspace("a", thread) / "node_modules").mkdir()
    with machines.on("b"):
        with running_worker():
            wait_until(lambda: Machine.objects.filter(name="b").exists())
        keep_alive("b")
        set_draining("a", True)
    assert next(row for row in machine_states() if row.name == "a").threads == 1
    with machines.on("a"):
        waiting = start_run(User.objects.get(), thread=thread.pk)
        with running_worker():
            wait_until(lambda: fresh(run).host == "")
            assert Run.objects.get(pk=waiting.pk).status == "queued"
        wait_until(lambda: not machines.workspace("a", thread).exists())
    with machines.on("b"):
        assert drive_to_end(waiting).status == "completed"
    found = machines.workspace("b", thread)
    assert (found / "unsaved").read_text() == "by nobody's call"
    assert (found / "large").stat().st_size == 17 * 1024**2
    assert "node_modules" in told(waiting)
    assert "failed" not in told(waiting)
    assert {row.state for row in machine_states() if row.name == "a"} <= {"drained", "silent"}


def test_a_thread_that_is_too_large_ends_the_command_and_moves_later(
    machines: Machines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    large = machines.workspace("a", run.thread) / "large"
    large.write_bytes(b"x" * 2_000)
    with machines.on("b"):
        with running_worker():
            wait_until(lambda: Machine.objects.filter(name="b").exists())
        keep_alive("b")
    monkeypatch.setattr(sending, "LIMITS", replace(sending.LIMITS, file_bytes=1_000))
    with machines.on("a"), running_worker():
        assert run_command_line(["hosts", "drain", "a"]) == 1
        said = capsys.readouterr()
        reason = "1 of its files are more than a snapshot holds."
        assert f"Thread {run.thread_id} cannot be moved: {reason}" in said.out
        assert f"vel prune --thread {run.thread_id} --apply" in said.err
        large.unlink()
        wait_until(lambda: fresh(run).host == "")
        assert run_command_line(["hosts", "drain", "a"]) == 0
    assert fresh(run).cannot_move == ""


@pytest.mark.parametrize("how", ["dead", "drained"])
def test_closed_files_move(machines: Machines, tmp_path: Path, how: str) -> None:
    with machines.on("a"):
        run = play(tmp_path, CLOSE)
    if how == "drained":
        with machines.on("b"):
            with running_worker():
                wait_until(lambda: Machine.objects.filter(name="b").exists())
            keep_alive("b")
            set_draining("a", True)
        with machines.on("a"), running_worker():
            wait_until(lambda: fresh(run).host == "")
            wait_until(lambda: not machines.workspace("a", run.thread).exists())
    with machines.on("b"):
        if how == "dead":
            make_silent("a")
            declare_dead("a")
        later = play(tmp_path, SHOW, thread=run.thread)
    assert_shown(later)
    (moved,) = events(later, "workspace.moved")
    assert (moved["lost_host"], moved["missing"]) == ("a" if how == "dead" else "", [])


@pytest.mark.slow
def test_a_subagents_files_go_with_the_familys(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"), write("/sandbox/shared/x", "of all"))
    child = Thread.objects.create(
        agent_id=run.thread.agent_id,
        owner_id=run.owner_id,
        root=run.thread,
        host="a",
    )
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        child.refresh_from_db()
        assert (child.host, child.lost_host) == ("", "a")


def test_the_storage_gets_the_objects_of_snapshots(machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, write("notes.md", "one"), write("notes.md", "two"))
        prefix = f"snapshots/{run.thread_id}"
        manifests = set(stored().listdir(f"{prefix}/manifests")[1])
        rows = WorkspaceSnapshot.objects.filter(is_stored=True)
        assert manifests == set(rows.values_list("manifest", flat=True)) | {rows[0].base}
        assert len(stored().listdir(f"{prefix}/objects")[1]) == 2


def test_a_single_machine_writes_nothing_to_the_storage(machines: Machines, tmp_path: Path) -> None:
    run = play(tmp_path, write("notes.md", "one"))
    assert not Machine.objects.exists()
    assert not WorkspaceSnapshot.objects.get().is_stored
    assert fresh(run).placement == 0
    assert "workspace.moved" not in json.dumps([event["type"] for event in events(run)])
