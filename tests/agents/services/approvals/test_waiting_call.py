"""The current file of a waiting call, which is always one of the agent's own files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from agents.models import ApprovalRequest, SeenFile, StateFile, Thread
from agents.review import Unreadable, as_text
from agents.review.parts import CommandSection, DiffSection, FieldsSection
from agents.services.approvals.waiting_call import MAX_BYTES, MAX_LINES, current_text, review_of
from agents.services.files.seen_files import DatabaseSeenFiles
from agents.services.files.thread_files import in_transaction
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.settings import DataSettings
from tests.agents.admin import rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return the directory of a waiting run of ada's."""
    rows.agent(sandbox=True, network="allowlist", allowed_hosts=["example.org"])
    run = rows.run(rows.user())
    with transaction.atomic():
        assign_sandbox_uid(run.thread)
    return open_workspace(workspace_location(run.thread)).directories["workspace"]


def waiting(tool: str, **given: Any) -> ApprovalRequest:
    return rows.asked(Thread.objects.get().runs.get(), tool, given)


def write(path: str, content: str = "new\n") -> ApprovalRequest:
    return waiting("write_file", path=path, content=content)


def reason(request: ApprovalRequest) -> str:
    found = current_text(request)
    assert isinstance(found, Unreadable), found
    return found.reason


def notes(request: ApprovalRequest) -> list[str]:
    section = review_of(request).sections[0]
    assert isinstance(section, DiffSection | CommandSection)
    return [note.text for note in section.notes]


def test_a_file_is_compared_as_it_is_now(workspace: Path) -> None:
    (workspace / "notes.md").write_bytes(b"one\r\ntwo\n")
    request = waiting("edit_file", file_path="notes.md", old_string="two", new_string="2")
    assert current_text(request) == "one\r\ntwo\n"
    review = review_of(request)
    assert review.title == "Edit notes.md"
    section = review.sections[0]
    assert isinstance(section, DiffSection)
    assert (section.status, section.added, section.removed) == ("changed", 1, 1)
    assert notes(request) == []


def test_no_file_is_a_new_file(workspace: Path) -> None:
    request = write("new/notes.md")
    assert current_text(request) is None
    assert review_of(request).title == "Create new/notes.md"


def test_looking_makes_no_directories() -> None:
    rows.agent(sandbox=True)
    rows.run(rows.user())
    request = write("notes.md")
    assert current_text(request) is None
    assert review_of(request).title == "Create notes.md"
    # The run's worker creates the directory.
    assert not (DataSettings.now().workspaces / request.run.thread_id).exists()


SECRET = "a line of a file outside"


@pytest.mark.parametrize("kind", ["absolute", "relative", "directory", "own"])
def test_planted_links_do_not_lead_out(workspace: Path, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    path = "link.txt"
    match kind:
        case "absolute":
            (workspace / path).symlink_to(secret)
        case "relative":
            (workspace / path).symlink_to(os.path.relpath(secret, workspace))
        case "directory":
            (workspace / "dir").symlink_to(tmp_path)
            path = "dir/secret.txt"
        case "own":
            # The link stays inside. Reading through it would be safe, but no tool writes through
            # it.
            (workspace / "real.txt").write_text("mine")
            (workspace / path).symlink_to("real.txt")
    for request in (
        write(path),
        waiting_edit(path),
    ):
        text = as_text(review_of(request))
        assert SECRET not in text
        assert "This call would fail:" in text


def waiting_edit(path: str) -> ApprovalRequest:
    run = Thread.objects.get().runs.get()
    given = {"path": path, "old_text": "a", "new_text": "b"}
    return rows.asked(run, "edit_file", given, position=1)


def test_a_link_to_the_hosts_accounts_is_not_shown(workspace: Path) -> None:
    (workspace / "passwd").symlink_to("/etc/passwd")
    request = write("passwd")
    assert "leads out of the directory" in reason(request)
    assert "root:" not in as_text(review_of(request))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../../../../etc/passwd", "~/x", "/sandbox/../etc/passwd", "a\0b"]
)
def test_paths_outside_are_refused(workspace: Path, path: str) -> None:
    request = write(path.replace("\0", "\ud800"))  # a NUL is refused in the model's reply
    assert "cannot be read" in reason(request)
    assert any(note.startswith("This call would fail:") for note in notes(request))


def test_large_and_binary_files_are_described(workspace: Path) -> None:
    (workspace / "image.png").write_bytes(b"\x89PNG\0")
    (workspace / "latin1.txt").write_bytes(b"caf\xe9")
    (workspace / "large.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (workspace / "lines.txt").write_bytes(b"\n" * (MAX_LINES + 1))
    (workspace / "directory").mkdir()
    os.mkfifo(workspace / "fifo")
    said = {}
    for number, path in enumerate(os.listdir(workspace)):
        run = Thread.objects.get().runs.get()
        given = {"path": path, "content": "new\n"}
        said[path] = reason(rows.asked(run, "write_file", given, position=number))
    assert said["image.png"] == said["latin1.txt"] == "The file is no text."
    assert "bytes" in said["large.txt"]
    assert "lines" in said["lines.txt"]
    assert "a directory" in said["directory"]
    assert "FIFO" in said["fifo"]


def test_a_workspace_of_another_machine_is_not_looked_for_here(workspace: Path) -> None:
    (workspace / "notes.md").write_text("of a namesake")
    Thread.objects.update(host="elsewhere")
    request = write("notes.md")
    assert reason(request) == "The workspace is on another machine, elsewhere."
    assert review_of(request).title == "Write notes.md"


def test_a_read_only_place_is_reported(workspace: Path) -> None:
    request = write("/skills/pdf/SKILL.md")
    assert "This call would fail: the path is read-only." in notes(request)


def test_a_file_changed_since_the_agent_read_it_is_reported(workspace: Path) -> None:
    (workspace / "notes.md").write_text("one\n")
    request = write("notes.md")
    seen = DatabaseSeenFiles(request.run.thread_id, request.run_id, in_transaction, lambda: None)
    path = "/sandbox/workspace/notes.md"
    seen.put(path, "0" * 64)
    assert notes(request) == ["This call would fail: the file has changed since the agent saw it."]
    SeenFile.objects.all().delete()
    assert notes(request) == []


def test_files_without_a_sandbox_are_rows() -> None:
    rows.agent(sandbox=False)
    run = rows.run(rows.user())
    StateFile.objects.create(thread=run.thread, path="/notes.md", content=b"one\n")
    request = write("notes.md", "two\n")
    assert current_text(request) == "one\n"
    assert review_of(request).title == "Replace notes.md"


def test_a_command_shows_its_network_access(workspace: Path) -> None:
    request = waiting("execute", command="make")
    section = review_of(request).sections[0]
    assert isinstance(section, CommandSection)
    assert [fact.value for fact in section.facts if fact.name == "Network"] == ["only example.org"]
    assert isinstance(current_text(request), Unreadable)


@pytest.mark.parametrize("given", [{}, {"path": 5, "content": "x"}, {"path": None}])
def test_an_input_that_does_not_fit_is_shown_as_it_is(given: dict[str, Any]) -> None:
    rows.agent(sandbox=True)
    rows.run(rows.user())
    assert review_of(waiting("write_file", **given)).title == "Call write_file"


def test_python_is_shown_with_the_files_that_it_imports(workspace: Path) -> None:
    (workspace / "totals.py").write_text("import rates\n\nprint('\u202ehidden')\n")
    (workspace / "rates.py").write_text("RATE = 2\n")
    (workspace / "json.py").write_text("print('never imported')\n")
    (workspace / "unnamed.py").write_text("print('never imported')\n")
    review = review_of(waiting("execute_python", code="import json, totals\n"))
    command, files = review.sections
    assert isinstance(command, CommandSection)
    assert command.notes == ()
    assert isinstance(files, FieldsSection)
    names = [field.name for field in files.fields]
    assert names == ["/sandbox/workspace/totals.py", "/sandbox/workspace/rates.py"]
    text = as_text(review)
    assert "RATE = 2" in text
    assert "⟨U+202E⟩hidden" in text
    assert "never imported" not in text


def test_files_that_cannot_be_shown_are_named(workspace: Path) -> None:
    (workspace / "linked.py").symlink_to("/etc/passwd")
    (workspace / "fast.so").write_bytes(b"\x7fELF\0")
    review = review_of(waiting("execute_python", code="import sys, linked, fast; sys.path"))
    command, files = review.sections
    assert isinstance(command, CommandSection)
    assert [note.severity for note in command.notes] == ["warning", "warning"]
    assert "Not every file" in command.notes[0].text
    assert "sys.path" in command.notes[1].text
    assert isinstance(files, FieldsSection)
    shown = {field.name: field.lines[0][0].text for field in files.fields}
    assert "cannot be read" in shown["/sandbox/workspace/linked.py"]
    assert "not text" in shown["/sandbox/workspace/fast.so"]
    assert "root:" not in as_text(review)


def test_code_without_own_modules_is_shown_alone(workspace: Path) -> None:
    (workspace / "sitecustomize.py").write_text("print('never imported')\n")
    [section] = review_of(waiting("execute_python", code="print(2 + 2)")).sections
    assert isinstance(section, CommandSection)
    assert section.notes == ()
