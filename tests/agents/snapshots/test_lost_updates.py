"""No agent overwrites changes that it has not seen."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from agents.models import Run, SeenFile, StateFile, ToolCall
from agents.services.files.seen_files import DatabaseSeenFiles, _read
from sandbox.backends import RememberingBackend, TreeBackend
from sandbox.directories.file_lock import FileLock
from tests.agents.snapshots.driven import area, calls, command, edit, play, read, write

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
]


def said(call: ToolCall) -> str:
    return str(json.loads(call.result))


def test_a_write_over_a_commands_change_is_refused_until_it_is_read(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        write("a", "mine\n"),
        command("echo theirs > a"),
        write("a", "mine again\n"),
        edit("a", "theirs", "mine"),
        read("a"),
        edit("a", "theirs", "mine"),
        write("a", "and mine again\n"),
    )
    codes = [(call.tool, call.code) for call in calls(run)]
    assert codes == [
        ("write_file", ""),
        ("execute", ""),
        ("write_file", "file_error"),
        ("edit_file", "file_error"),
        ("read_file", ""),
        ("edit_file", ""),
        ("write_file", ""),
    ]
    assert "changed since you read it. Read it again" in said(calls(run)[2])
    assert (area(run) / "a").read_text() == "and mine again\n"


def test_it_is_remembered_from_run_to_run(tmp_path: Path) -> None:
    run = play(tmp_path, write("a", "one"), write("b", "one"))
    (area(run) / "a").write_text("a person's")
    (area(run) / "b").unlink()
    later = play(tmp_path, write("a", "two"), write("b", "two"), thread=run.thread)
    assert "changed since you read it" in said(calls(later)[0])
    assert "deleted since you read it" in said(calls(later)[1])
    assert (area(run) / "a").read_text() == "a person's"
    last = play(tmp_path, read("b"), write("b", "two"), thread=run.thread)
    assert [call.code for call in calls(last)] == ["file_error", ""]


def test_a_file_created_since_is_not_overwritten(tmp_path: Path) -> None:
    run = play(tmp_path, read("a"), command("echo theirs > a"), write("a", "mine"))
    assert "when there was no such file" in said(calls(run)[2])
    assert (area(run) / "a").read_text() == "theirs\n"


def test_a_file_that_was_never_read_is_overwritten(tmp_path: Path) -> None:
    run = play(tmp_path, command("echo theirs > a"), write("a", "mine"))
    assert [call.code for call in calls(run)] == ["", ""]
    assert (area(run) / "a").read_text() == "mine"


@pytest.mark.both_databases
def test_files_in_rows_are_protected_too(tmp_path: Path) -> None:
    run = play(tmp_path, write("/a", "one"), sandbox=False)
    StateFile.objects.filter(thread=run.thread_id).update(content=b"a person's")
    later = play(tmp_path, write("/a", "two"), thread=run.thread)
    assert "changed since you read it" in said(calls(later)[0])
    assert bytes(StateFile.objects.get(thread=run.thread_id).content) == b"a person's"


def test_a_subagent_remembers_for_itself(tmp_path: Path) -> None:
    """The child's writes are changes for the parent, although both share the thread."""
    run = play(tmp_path, write("a", "one"))
    child = Run.objects.create(
        thread=run.thread,
        number=99,
        parent=run,
        agent_version=run.agent_version,
        owner=run.owner,
        status="completed",
    )

    def files(of: Run) -> RememberingBackend:
        seen = DatabaseSeenFiles(
            run.thread_id, of.pk, lambda function, *given: function(*given), lambda: None
        )
        lock = FileLock(tmp_path / "lock")
        return RememberingBackend(TreeBackend(area(run)), seen, lock)

    path = "/a"
    assert "error" not in files(run).read_file(path)
    assert "error" not in files(child).write_file(path, "the child's")
    assert "changed since" in files(run).write_file(path, "the parent's")["error"]
    assert "error" not in files(child).write_file(path, "the child's, again")
    assert "error" not in files(run).read_file(path)
    assert "error" not in files(run).write_file(path, "the parent's")
    readers = set(SeenFile.objects.filter(thread=run.thread_id).values_list("reader", flat=True))
    assert readers == {"", child.pk}


def test_the_remembered_state_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.services.files.seen_files.MAX_FILES", 5)
    run = play(tmp_path, *(write(f"{number}", "x") for number in range(8)))
    assert SeenFile.objects.filter(thread=run.thread_id).count() <= 6
    _, known = _read(run.thread_id, run.pk)
    assert len(known) <= 6


@pytest.mark.both_databases
def test_a_write_waits_for_another_agents_write(tmp_path: Path) -> None:
    files = RememberingBackend(
        TreeBackend(tmp_path), DictOfSeen(), FileLock(tmp_path / "lock", patience=0.05)
    )
    with FileLock(tmp_path / "lock"):
        for answer in (files.write_file("/a", "x"), files.edit_file("/a", "x", "y")):
            assert "in use by another agent" in answer["error"]
    assert "error" not in files.write_file("/a", "x")


class DictOfSeen(dict[str, str | None]):
    def put(self, path: str, content_hash: str | None) -> None:
        self[path] = content_hash


@pytest.mark.both_databases
def test_of_two_concurrent_writers_one_is_refused(tmp_path: Path) -> None:
    """Two agents with their own locks and seen files: each increment counts."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "n").write_text("0")
    refused = []

    def count() -> None:
        files = RememberingBackend(
            TreeBackend(tmp_path / "tree"), DictOfSeen(), FileLock(tmp_path / "lock")
        )
        done = 0
        while done < 40:
            text = files.read_file("/n")["content"]
            number = int(text.split("|")[1])
            answer = files.write_file("/n", str(number + 1))
            if "error" in answer:
                assert "changed since" in answer["error"]
                refused.append(1)
            else:
                done += 1

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "tree" / "n").read_text() == "120"
