"""Vel can use a workspace after an agent removed its own permissions, also without root."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.models import Run
from agents.services.erasure.actions import erase_thread, finish_erasures
from agents.services.files.changes import steps_of_turn
from agents.services.files.restoring import restore_workspace
from agents.services.files.workspace_care import (
    KeptWorkspace,
    archive_workspace,
    kept_workspaces,
    remove_workspace,
)
from agents.settings import DataSettings
from tests.agents.snapshots.driven import area, calls, command, play, write
from velproject.cli.commands.runs.drive import kept_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]

CLOSE = command(
    "mkdir -p closed/inner read-only; echo 1 > closed/inner/one; echo 2 > read-only/two; "
    "echo 3 > three; ln -s /etc/passwd closed/link; "
    "chmod 0 three closed/inner closed; chmod 555 read-only; chmod 0 /sandbox/workspace"
)
KEPT = ["closed/inner/one", "read-only/two", "three"]
SHOW = command("chmod -R u+rX . && cat closed/inner/one read-only/two three && echo on > four")


def ada() -> User:
    return User.objects.get(username="ada")


def kept(run: Run) -> KeptWorkspace:
    (found,) = [each for each in kept_workspaces() if each.key == run.thread_id]
    return found


def assert_shown(run: Run) -> None:
    (shown,) = calls(run)
    told = json.loads(json.loads(shown.result))
    assert (told["exit_code"], told["stdout"]) == (0, "1\n2\n3\n"), told


def assert_nothing_is_left(run: Run) -> None:
    data = DataSettings.now().DATA_DIR
    assert [path for path in data.rglob("*") if run.thread_id in str(path)] == []


def test_the_thread_can_be_used_again(tmp_path: Path) -> None:
    run = play(tmp_path, CLOSE)
    assert kept_files(run) == [area(run)]
    assert_shown(play(tmp_path, SHOW, thread=run.thread))


def test_it_is_erased(tmp_path: Path) -> None:
    run = play(tmp_path, CLOSE)
    erase_thread(run.thread_id, by=ada())
    finish_erasures()
    assert_nothing_is_left(run)
    assert Path("/etc/passwd").exists()


def test_it_is_pruned(tmp_path: Path) -> None:
    run = play(tmp_path, CLOSE)
    remove_workspace(kept(run))
    assert_nothing_is_left(run)


def test_it_is_archived(tmp_path: Path) -> None:
    run = play(tmp_path, CLOSE)
    path, done = archive_workspace(kept(run), tmp_path / "archives")
    assert [name for name, _ in done.left_out] == ["workspace/closed/link"]
    with tarfile.open(path) as archive:
        names = {member.name for member in archive}
    assert {f"workspace/{name}" for name in KEPT} <= names


def test_it_is_restored(tmp_path: Path) -> None:
    run = play(tmp_path, write("three", "first"), CLOSE)
    before, after = steps_of_turn(run.thread_id, run.id, 2)
    assert restore_workspace(run.thread, before, by=ada()).failed == []
    assert [path.name for path in area(run).iterdir()] == ["three"]
    assert (area(run) / "three").read_text() == "first"
    assert restore_workspace(run.thread, after, by=ada()).failed == []
    assert_shown(play(tmp_path, SHOW, thread=run.thread))


@pytest.mark.slow
def test_it_is_forked(tmp_path: Path) -> None:
    run = play(tmp_path, CLOSE)
    with prepared_fork(run, ForkRequest(files="now"), by=ada()) as fork:
        complete_fork(fork)
    assert_shown(play(tmp_path, SHOW, thread=fork.thread))
