"""Uploads are stored completely or not at all, under safe names."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings

from agents.models import Run, StateFile, Thread, Upload
from agents.services.errors import Conflict, InvalidRequest, NoSpace, NotFound
from agents.services.files.state_files import MAX_FILE_BYTES
from agents.services.files.thread_files import in_transaction
from agents.services.files.upload_contents import directory_uploads, row_uploads
from agents.services.files.uploads import (
    check_uploads,
    create_run_with,
    delete_upload,
    store_uploads,
)
from agents.services.files.workspace_care import kept_workspaces, remove_workspace
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.services.runs.start import RunRequest, create_run
from sandbox.errors import FileChanged, FileTooLarge
from tests.agents.engine.by_hand import at_once
from tests.support.documents import docx, png
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def file(name: str, data: bytes = b"x") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def new_thread(user: User | None = None, *, sandbox: bool = True, slug: str = "tester") -> Thread:
    user = user or make_user()
    make_agent(user, sandbox=sandbox, slug=slug)
    thread = create_run(RunRequest(agent=slug, message="Hello"), owner=user).run.thread
    Run.objects.update(status="completed")
    return thread


def directory(thread: Thread) -> Path:
    thread.refresh_from_db()
    assign_sandbox_uid(thread)
    return open_workspace(workspace_location(thread)).directories["user_uploads"]


def names(thread: Thread) -> list[str]:
    return sorted(path.name for path in directory(thread).iterdir())


def test_names_collide_as_on_any_file_system() -> None:
    thread = new_thread()
    given = [file("A.TXT"), file("a.txt"), file("a.docx", docx("x")), file("a.docx.md")]
    stored = store_uploads(thread, given)
    assert [upload.name for upload in stored] == ["A.TXT", "a-2.txt", "a.docx", "a.docx-2.md"]
    assert [upload.original_name for upload in stored] == ["A.TXT", "a.txt", "a.docx", "a.docx.md"]
    # The new file and its Markdown get names that no existing file has.
    (again,) = store_uploads(thread, [file("A.DOCX", docx("y"))])
    assert (again.name, again.rendition) == ("A-2.DOCX", "A-2.DOCX.md")


@pytest.mark.parametrize("name", ["../../x.txt", "/etc/x.txt", "a/../../x.txt", "..\\..\\x.txt"])
def test_no_name_leads_out(name: str) -> None:
    thread = new_thread()
    odd = file("x.txt")
    odd._name = name  # Django itself would have cut it
    store_uploads(thread, [odd])
    assert names(thread) == ["x.txt"]


def test_planted_links_and_files_are_not_followed_or_replaced(tmp_path: Path) -> None:
    """Commands cannot write to user_uploads. Even if they could, no file would be lost."""
    thread = new_thread()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    place = directory(thread)
    (place / "link.txt").symlink_to(victim)
    (place / "dir.txt").mkdir()
    os.mkfifo(place / "pipe.txt")
    with pytest.raises(Conflict):
        store_uploads(thread, [file("link.txt")])
    # A converted file is not written through a link, either.
    stored = store_uploads(thread, [file("dir.txt"), file("pipe.txt")])
    assert [upload.name for upload in stored] == ["dir-2.txt", "pipe-2.txt"]
    assert victim.read_bytes() == b"mine"


class Failing(SimpleUploadedFile):
    """A file that fails in the middle with a full disk."""

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_nothing() -> None:
    thread = new_thread()
    with pytest.raises(NoSpace, match="A disk of this server"):
        store_uploads(thread, [file("a.txt"), Failing("b.txt", b"half and more")])
    assert names(thread) == []
    assert not Upload.objects.exists()


def test_a_refused_file_starts_no_run() -> None:
    user = make_user()
    make_agent(user, sandbox=True)
    asked = RunRequest(agent="tester", message="Look")
    with pytest.raises(InvalidRequest) as refusal:
        create_run_with(asked, [file("a.txt"), file("b.exe", b"MZ\0")], owner=user)
    assert refusal.value.code == "upload_type"
    with pytest.raises(NoSpace):
        create_run_with(asked, [file("a.txt"), Failing("b.txt", b"x")], owner=user)
    assert (Run.objects.count(), Thread.objects.count(), Upload.objects.count()) == (0, 0, 0)


def test_limits_hold_for_the_thread_and_not_for_renditions() -> None:
    thread = new_thread()
    small = {**settings.VEL, "UPLOAD_FILES": 3, "UPLOAD_BYTES": 10_000}
    with override_settings(VEL=small):
        store_uploads(thread, [file("a.docx", docx("x"))])
        (directory(thread) / "a.docx.md").write_text("y" * 20_000)
        store_uploads(thread, [file("b"), file("c")])
        with pytest.raises(InvalidRequest, match="4 uploads"):
            store_uploads(thread, [file("d")])
    with pytest.raises(InvalidRequest):
        store_uploads(thread, [file(f"{n}") for n in range(10_000)])
    assert len(names(thread)) == 4


def test_concurrent_uploads_keep_the_limits() -> None:
    thread = new_thread()
    with override_settings(VEL={**settings.VEL, "UPLOAD_FILES": 3}):
        done = at_once(
            lambda: store_uploads(thread, [file("a"), file("b")]),
            lambda: store_uploads(thread, [file("a"), file("b")]),
        )
    assert sorted(isinstance(one, InvalidRequest) for one in done) == [False, True]
    assert names(thread) == ["a", "b"]


def test_an_idempotency_key_includes_the_files() -> None:
    user = make_user()
    make_agent(user, sandbox=True)
    asked = RunRequest(agent="tester", message="Look")

    def send(data: bytes) -> Any:
        return create_run_with(asked, [file("a.txt", data)], owner=user, idempotency_key="k")

    first = send(b"one")
    assert send(b"one").run == first.run
    with pytest.raises(Conflict) as refusal:
        send(b"two")
    assert refusal.value.code == "idempotency_mismatch"
    assert names(first.run.thread) == ["a.txt"]


def test_deleting() -> None:
    thread = new_thread()
    document, picture = store_uploads(thread, [file("a.docx", docx("x")), file("p.png", png())])
    (directory(thread) / "a.docx.md").write_text("x")
    Run.objects.update(status="waiting")
    with pytest.raises(Conflict) as refusal:
        delete_upload(thread, document.pk)
    assert refusal.value.code == "thread_busy"
    Run.objects.update(status="completed")
    before = Thread.objects.get().workspace_generation
    delete_upload(thread, document.pk)
    assert names(thread) == ["p.png"]
    assert Thread.objects.get().workspace_generation == before + 1
    with pytest.raises(NotFound):
        delete_upload(thread, document.pk)
    # A link in its place is removed itself.
    place = directory(thread) / "p.png"
    victim = place.parent.parent / "outputs" / "victim"
    victim.write_bytes(b"mine")
    place.unlink()
    place.symlink_to(victim)
    delete_upload(thread, picture.pk)
    assert victim.read_bytes() == b"mine"
    assert names(thread) == []


def test_the_rows_of_uploads_are_removed_with_the_workspace() -> None:
    """Otherwise rows would list deleted files and reserve their names."""
    thread, others = new_thread(), new_thread(make_user("bob"), slug="other")
    for each in (thread, others):
        store_uploads(each, [file("a.txt")])
    (kept,) = [entry for entry in kept_workspaces() if entry.key == thread.pk]
    remove_workspace(kept)
    assert list(Upload.objects.values_list("thread", flat=True)) == [others.pk]
    assert store_uploads(thread, [file("a.txt")])[0].name == "a.txt"


def test_deleting_from_rows() -> None:
    thread = new_thread(sandbox=False)
    (upload,) = store_uploads(thread, [file("a.docx", docx("x"))])
    assert StateFile.objects.get().path == "/user_uploads/a.docx"
    delete_upload(thread, upload.pk)
    assert not StateFile.objects.exists()


def test_an_upload_while_a_run_is_at_work_makes_its_approvals_stale() -> None:
    thread = new_thread()
    Run.objects.update(status="running")
    before = thread.workspace_generation
    (upload,) = store_uploads(thread, [file("a.txt")])
    assert upload.run is None
    assert Thread.objects.get().workspace_generation > before


@pytest.mark.parametrize("sandbox", [True, False])
def test_existing_bytes_of_the_thread_count(sandbox: bool) -> None:
    thread = new_thread(sandbox=sandbox)
    with override_settings(VEL={**settings.VEL, "UPLOAD_BYTES": 100}):
        store_uploads(thread, [file("a", b"x" * 60)])
        with pytest.raises(InvalidRequest, match="2 uploads with 101 bytes") as refusal:
            store_uploads(thread, [file("b", b"x" * 41)])
        assert refusal.value.code == "upload_too_large"
        store_uploads(thread, [file("b", b"x" * 40)])
    assert Upload.objects.count() == 2


@pytest.mark.parametrize("sandbox", [True, False])
def test_an_upload_replaces_nothing_even_in_a_race(sandbox: bool) -> None:
    thread = new_thread(sandbox=sandbox)
    if sandbox:
        assign_sandbox_uid(thread)
        there = directory_uploads(workspace_location(thread))
    else:
        there = row_uploads(thread.pk, in_transaction, lambda: None)
    there.put("a.txt", [b"first"])
    with pytest.raises(FileChanged):
        there.put("a.txt", [b"second"])
    assert there.read("a.txt", 100) == b"first"


@override_settings(VEL={**settings.VEL, "UPLOAD_BYTES": 2 * MAX_FILE_BYTES})
def test_a_file_stored_as_a_row_has_its_own_limit() -> None:
    """A file that becomes a row is in memory several times."""
    thread = new_thread(sandbox=False)
    with pytest.raises(InvalidRequest, match="with a sandbox") as refused:
        store_uploads(thread, [file("a"), file("b", b"x" * (MAX_FILE_BYTES + 1))])
    assert refused.value.code == "upload_too_large"
    assert not Upload.objects.exists()
    assert not StateFile.objects.exists()
    files = row_uploads(thread.pk, in_transaction, lambda: None)
    with pytest.raises(FileTooLarge, match="divide it"):
        files.replace("c", bytes(MAX_FILE_BYTES + 1))


def test_too_much_is_refused_before_anything_is_looked_at() -> None:
    program = file("a.exe", b"MZ\0")
    for limits in ({"UPLOAD_FILES": 1}, {"UPLOAD_BYTES": 5}):
        limited = override_settings(VEL={**settings.VEL, **limits})
        with limited, pytest.raises(InvalidRequest) as refusal:
            check_uploads([program, program])
        assert refusal.value.code == "upload_too_large"


def test_an_upload_leaves_the_reserve_free() -> None:
    thread = new_thread()
    free = shutil.disk_usage(settings.VEL["DATA_DIR"]).free
    with (
        override_settings(VEL={**settings.VEL, "RESERVE_BYTES": 10 * free}),
        pytest.raises(NoSpace, match="The disk of the data directory is full"),
    ):
        store_uploads(thread, [file("a.txt")])
    assert names(thread) == []
    with override_settings(VEL={**settings.VEL, "RESERVE_BYTES": free // 10}):
        store_uploads(thread, [file("a.txt")])
    assert names(thread) == ["a.txt"]
