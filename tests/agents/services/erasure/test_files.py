"""Erasing removes the files of a thread from every place on this machine, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, storages

from agents.models import Message, Run, Thread
from agents.services.erasure.actions import erase_thread, erasures_wait, finish_erasures
from agents.services.erasure.files import erase_files
from agents.services.files.workspace_care import REMOVED
from agents.settings import DataSettings
from agents.states import RunStatus
from tests.agents.services.erasure.test_actions import SAID, ann, delegated, talked

__all__ = ["ann"]

pytestmark = pytest.mark.django_db(transaction=True)

REFUSES: set[str] = set()


class Unwilling(InMemoryStorage):
    """A storage that does not delete the threads in `REFUSES`."""

    def delete(self, name: str) -> None:
        if name in REFUSES:
            raise ConnectionError("the storage is away")
        super().delete(name)


@pytest.fixture(autouse=True)
def _willing() -> None:
    REFUSES.clear()


def places_of(thread: str) -> list[Path]:
    """Return one path in each directory that can have data of a thread."""
    settings = DataSettings.now()
    return [
        settings.workspaces / thread,
        settings.workspaces / f"{REMOVED}{thread}-0a1b",  # an interrupted removal
        settings.snapshots / thread,
        settings.synced_copies / thread,
        settings.set_aside / f"{thread}-0a1b2c3d",
        settings.archives / f"{thread}-20260101T000000Z-aa.tar.gz",
    ]


def fill(thread: str) -> None:
    for place in places_of(thread):
        if place.suffix == ".gz":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(SAID)
        else:
            (place / "deep").mkdir(parents=True)
            (place / "deep" / "a").write_text(SAID)


def there(thread: str) -> list[Path]:
    return [place for place in places_of(thread) if place.exists()]


def test_all_places_of_the_thread_and_its_subagents_are_emptied_and_no_others(ann: User) -> None:
    run, other = talked(ann), talked(ann, "another")
    (child,) = delegated(run)
    Run.objects.update(status=RunStatus.COMPLETED)
    for thread in (run.thread_id, child.thread_id, other.thread_id):
        fill(thread)
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert not erasures_wait()
    assert (there(run.thread_id), there(child.thread_id)) == ([], [])
    assert there(other.thread_id) == places_of(other.thread_id)


def test_a_broken_link_does_not_stop_erasing(ann: User) -> None:
    thread = talked(ann).thread_id
    place = DataSettings.now().workspaces / thread
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to("/nonexistent/elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        erase_files(thread)
    assert not place.is_symlink()
    assert list(place.parent.glob(f"{REMOVED}{thread}-*"))  # reported, and tried again


def test_files_left_in_the_storage_keep_their_rows(
    ann: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = talked(ann)
    storage = {"BACKEND": f"{__name__}.Unwilling"}
    settings.STORAGES = {**settings.STORAGES, "vel": storage}
    settings.VEL = {**settings.VEL, "HOST": "one"}
    Thread.objects.update(host="one")
    kept = f"snapshots/{run.thread_id}/objects/a"
    storages["vel"].save(kept, ContentFile(SAID))
    REFUSES.add(kept)
    erase_thread(run.thread_id, by=ann)
    finish_erasures()
    assert {line.levelname for line in caplog.records} == {"WARNING"}
    assert run.thread_id in caplog.text
    assert erasures_wait()
    assert Message.objects.filter(run=run.pk).exists()
    REFUSES.clear()
    finish_erasures()
    assert not erasures_wait()
    assert not storages["vel"].exists(kept)
    assert not Thread.every.exists()
