"""The state of MCP programs moves with the thread, from a drained host and from a dead one."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from django.contrib.auth.models import User

from agents.features.mcp_client import programs, runs, thread_state
from agents.features.mcp_client.models import McpState
from agents.features.mcp_client.programs import state_lock
from agents.features.mcp_client.thread_state import NotOurs, record_own_state, store_state
from agents.models import Machine, Message, Run, Thread, ToolCall
from agents.services.erasure.actions import erase_thread, finish_erasures
from agents.services.files.thread_files import in_transaction
from agents.services.files.workspace_care import kept_workspaces, remove_workspace
from agents.services.files.workspaces import open_workspace, workspace_location
from agents.services.machines.actions import declare_dead, set_draining
from agents.services.placement import Member
from agents.services.thread_transfer import sending
from agents.services.thread_transfer.sending import (
    CannotSendThread,
    next_thread_to_send,
    send_thread,
)
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError
from sandbox.snapshots import Manifest, SnapshotLimits
from sandbox.workspace import Workspace
from tests.agents.engine.test_locking import in_thread, open_transaction, wait_until_it_waits
from tests.agents.features.mcp_client.test_programs import COUNT, LOOK, SERVERS, results, told
from tests.agents.snapshots.driven import play
from tests.support.hang import HANG
from tests.support.machines import Machines, keep_alive, make_silent, stored
from tests.support.mcp_servers import accept_all, define
from tests.support.runs import (
    events,
    make_user,
    running_worker,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]


@pytest.fixture
def ada(machines: Machines) -> User:
    ada = make_user(is_superuser=True)
    accept_all(define(ada, "python"), ada)
    return ada


def note(run: Run) -> str:
    run.refresh_from_db()
    notes = Message.objects.filter(run=run, role="user", turn__gt=0)
    return run.opening_note + "".join(each.text for each in notes)


def in_storage(run: Run) -> list[str]:
    found = []
    for part in ("manifests", "objects"):
        place = f"snapshots/{run.thread_id}/mcp/{part}"
        if stored().exists(place):
            found += stored().listdir(place)[1]
    return found


LINKS = "import os; os.symlink('/etc/passwd', state + '/p'); os.chmod(state, 0o500); out = 1"


@pytest.mark.slow
def test_the_state_moves_with_the_thread(ada: User, machines: Machines, tmp_path: Path) -> None:
    with machines.on("a"):
        run = play(tmp_path, told(COUNT), told(COUNT), told(LINKS), **SERVERS)
        assert len(in_storage(run)) == 2
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        later = play(tmp_path, told(COUNT), told(LOOK), thread=run.thread)
    assert results(later) == ["['/state', 3, 1]", "['count', 'p']"]
    (moved,) = events(later, "workspace.moved")
    assert (moved["lost_host"], moved["mcp_state"]) == ("a", "kept")
    assert "are those of the last end or wait" in note(later)
    (place,) = (machines.workspace("b", run.thread, "mcp")).iterdir()
    assert place.stat().st_uid == machines.workspace("b", run.thread).stat().st_uid
    assert (place / "p").is_symlink()

    with machines.on("a"), pytest.raises(SandboxError, match="another host's"):
        record_own_state(run.thread_id, "0" * 64)
    with machines.on("c"), running_worker():
        wait_until(lambda: Machine.objects.filter(name="c").exists())
    keep_alive("c")
    with machines.on("b"):
        set_draining("b", True)
        with running_worker():
            wait_until(lambda: _is_free(run))
    with machines.on("c"):
        last = play(tmp_path, told(COUNT), thread=run.thread)
    assert results(last) == ["['/state', 4, 1]"]
    (moved,) = events(last, "workspace.moved")
    assert (moved["lost_host"], moved["mcp_state"]) == ("", "kept")


def _is_free(run: Run) -> bool:
    run.thread.refresh_from_db()
    return run.thread.host == ""


@pytest.mark.slow_cases
@pytest.mark.parametrize("how", ["too large", "half of it", "not in the storage", "damaged"])
def test_a_lost_state_is_reported(
    ada: User, machines: Machines, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how in ("too large", "half of it"):
        monkeypatch.setattr(thread_state, "LIMITS", SnapshotLimits(file_bytes=999))
    if how == "half of it":
        monkeypatch.setattr(Manifest, "over_limits", lambda manifest: [])
    with machines.on("a"):
        code = "for size in (1, 1000): open(f'{state}/{size}', 'wb').write(bytes(size))"
        run = play(tmp_path, told(code), **SERVERS)
        (manifest, *objects) = in_storage(run) or [""]
        if how == "not in the storage":
            stored().delete(f"snapshots/{run.thread_id}/mcp/manifests/{manifest}")
        if how == "damaged":
            name = f"snapshots/{run.thread_id}/mcp/objects/{objects[0]}"
            Path(stored().path(name)).write_bytes(b"poisoned")
        assert McpState.objects.get().manifest == manifest
        assert bool(manifest) == (how != "too large")
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        later = play(tmp_path, told(LOOK), thread=run.thread)
        assert events(later, "workspace.moved")[0]["mcp_state"] == "lost"
        assert "are lost: they start again without them" in note(later)
        assert results(later) == ["[]"]


@pytest.mark.slow
def test_erasing_takes_it_from_the_storage(ada: User, machines: Machines, tmp_path: Path) -> None:
    with machines.on("a") as data:
        run = play(tmp_path, told(COUNT), **SERVERS)
        assert in_storage(run)
        erase_thread(run.thread_id, by=ada)
        finish_erasures()
        assert in_storage(run) == []
        assert not McpState.objects.exists()
        assert [path for path in data.rglob("*") if run.thread_id in str(path)] == []


def test_a_thread_erased_while_it_is_stored_leaves_nothing(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores, has_ended = runs.store_state, Event()

    def erased_meanwhile(workspace: Workspace) -> str | None:
        assert has_ended.wait(HANG)
        erase_thread(workspace.root.name, by=None)
        finish_erasures()
        place = workspace.root / "mcp" / "plain-1"  # the state at the start of the copy
        place.mkdir(parents=True)
        (place / "count").write_text("1")
        return stores(workspace)

    with machines.on("a") as data:
        thread = play(tmp_path, told(COUNT), **SERVERS).thread
        monkeypatch.setattr(runs, "store_state", erased_meanwhile)
        with running_worker() as running:
            run = start_run(ada, thread=thread.pk)
            running.submit(run.pk)
            wait_for_status(run, "completed")
            has_ended.set()
        assert in_storage(run) == []
        assert not (data / "snapshots" / thread.pk).exists()


def test_a_move_that_is_under_way_is_waited_for(
    ada: User, machines: Machines, tmp_path: Path
) -> None:
    with machines.on("a"):
        run = play(tmp_path, told(COUNT), **SERVERS)
        stored_here = McpState.objects.get().manifest

        def move() -> None:
            Thread.objects.filter(pk=run.thread_id).update(host="b")

        refused: list[SandboxError] = []

        def record() -> None:
            try:
                record_own_state(run.thread_id, "0" * 64)
            except SandboxError as error:
                refused.append(error)

        with open_transaction(move) as commit:
            recording = in_thread(record)
            wait_until_it_waits(recording)
            commit()
            recording.join()
        assert [type(error) for error in refused] == [NotOurs]
        assert McpState.objects.get().manifest == stored_here


@pytest.mark.slow
def test_nothing_is_stored_while_a_program_writes(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machines.on("a"):
        run = play(tmp_path, told(COUNT), **SERVERS)
        before = in_storage(run)
        workspace = open_workspace(workspace_location(run.thread))
        (program,) = (workspace.root / "mcp").iterdir()
        (program / "count").write_text("half of wh")
        monkeypatch.setattr(programs, "PATIENCE", 0.1)
        with state_lock(run.thread_id, program.name), pytest.raises(LockTimeout):
            store_state(workspace)
        assert in_storage(run) == before


def test_old_states_leave_the_storage(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_state, "MAX_STATES", 1)
    monkeypatch.setattr("agents.services.files.stored_snapshots.YOUNG_SECONDS", -5.0)
    monkeypatch.setattr("sandbox.snapshots.store.YOUNG_SECONDS", -5.0)
    with machines.on("a") as data:
        run = play(tmp_path, told(COUNT), **SERVERS)
        play(tmp_path, told(COUNT), thread=run.thread)
        play(tmp_path, told(COUNT), thread=run.thread)
        assert len(in_storage(run)) == 2
        assert len(list((data / "snapshots" / run.thread_id / "mcp" / "manifests").iterdir())) == 1
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        assert results(play(tmp_path, told(COUNT), thread=run.thread)) == ["['/state', 4, 1]"]
    assert ToolCall.objects.filter(status="succeeded").count() == 4


def test_a_drained_host_keeps_states_that_are_too_large_for_the_storage(
    ada: User, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machines.on("a"):
        monkeypatch.setattr(thread_state, "LIMITS", SnapshotLimits(file_bytes=999))
        code = "open(state + '/x', 'wb').write(bytes(1000)); out = 1"
        run = play(tmp_path, told(code), **SERVERS)
        assert McpState.objects.get().manifest == ""  # this would be lost now
        member = Member("a", Machine.objects.get(name="a").incarnation)
        to_send = next_thread_to_send(member, "")
        assert to_send is not None
        with monkeypatch.context() as less:
            less.setattr(sending, "LIMITS", SnapshotLimits(file_bytes=999))
            with pytest.raises(CannotSendThread, match="MCP programs are larger"):
                send_thread(to_send, member, in_transaction)
        assert not _is_free(run)
        to_send = next_thread_to_send(member, "")
        assert to_send is not None
        assert send_thread(to_send, member, in_transaction)
    with machines.on("b"):
        later = play(tmp_path, told(LOOK), thread=run.thread)
        assert results(later) == ["['x']"]
        pruned = next(each for each in kept_workspaces() if each.key == run.thread_id)
        remove_workspace(pruned)
        assert not McpState.objects.exists()
