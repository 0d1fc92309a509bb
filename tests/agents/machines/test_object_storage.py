"""Snapshots in a real S3 server: stored, fetched, checked, pruned and erased."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from agents.models import Run
from agents.services.files.stored_snapshots import (
    StorageFailed,
    StoredSnapshots,
    erase_stored,
)
from agents.services.machines.actions import declare_dead
from sandbox.snapshots import SnapshotLost
from tests.agents.snapshots.driven import command, play, write
from tests.support.machines import Machines, make_silent
from tests.support.runs import running_worker, start_run, wait_until
from tests.support.s3 import BUCKET, S3Server
from velproject import env

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def shared(machines: Machines, s3: S3Server) -> Machines:
    machines.storage = env.storages(s3.storage_url)["vel"]
    return machines


def store_of(shared: Machines, name: str, thread: str) -> StoredSnapshots:
    return StoredSnapshots(shared.data(name) / "snapshots" / thread, thread)


def area(shared: Machines, **files: bytes) -> dict[str, Path]:
    place = shared.directory / secrets.token_hex(4)
    place.mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)
    return {"workspace": place}


def test_another_host_reads_published_files(shared: Machines, s3: S3Server) -> None:
    with shared.on("a"):
        mine = store_of(shared, "a", "t1")
        taken = mine.take(area(shared, x=b"one", y=b"two", z=b"one"))
        mine.publish(taken.manifest)
        assert len(s3.keys("team/snapshots/t1/objects/")) == 2
        mine.publish(taken.manifest)
    with shared.on("b"):
        theirs = store_of(shared, "b", "t1")
        nodes = theirs.load(taken.manifest).nodes
        assert theirs.read(nodes["workspace/x"].content, 100) == b"one"
        with pytest.raises(SnapshotLost):
            theirs.load("0" * 64)


def test_files_changed_in_the_storage_are_refused(shared: Machines, s3: S3Server) -> None:
    with shared.on("a"):
        mine = store_of(shared, "a", "t2")
        taken = mine.take(area(shared, x=b"one"))
        mine.publish(taken.manifest)
    (key,) = s3.keys("team/snapshots/t2/objects/")
    s3.client.put_object(Bucket=BUCKET, Key=key, Body=b"eno")
    with shared.on("b"):
        theirs = store_of(shared, "b", "t2")
        content = theirs.load(taken.manifest).nodes["workspace/x"].content
        assert theirs.read(content, 100) is None
        target = shared.directory / "target"
        with target.open("wb") as stream, pytest.raises(SnapshotLost, match="damaged"):
            theirs.copy_to(content, stream.fileno())


def test_half_an_object_is_written_again(shared: Machines, s3: S3Server) -> None:
    with shared.on("a"):
        mine = store_of(shared, "a", "t3")
        taken = mine.take(area(shared, x=b"one"))
        content = mine.load(taken.manifest).nodes["workspace/x"].content
        place = f"team/snapshots/t3/objects/{content}"
        s3.client.put_object(Bucket=BUCKET, Key=place, Body=b"o")
        mine.publish(taken.manifest)
        assert s3.client.get_object(Bucket=BUCKET, Key=place)["Body"].read() == b"one"


@pytest.mark.slow
def test_old_states_go_and_young_ones_stay(shared: Machines, s3: S3Server) -> None:
    with shared.on("a"):
        mine = store_of(shared, "a", "t4")
        files = area(shared, x=b"one")
        first = mine.take(files).manifest
        mine.publish(first)
        (files["workspace"] / "x").write_bytes(b"three")
        second = mine.take(files).manifest
        mine.publish(second)
        mine.forget_published({second}, lambda: None)
        assert len(s3.keys("team/snapshots/t4/")) == 4
        later = timezone.now() + timedelta(hours=2)
        with mock.patch("agents.services.files.stored_snapshots.timezone.now", return_value=later):
            with pytest.raises(LookupError):
                mine.forget_published({second}, mock.Mock(side_effect=LookupError))
            assert len(s3.keys("team/snapshots/t4/")) == 4
            mine.forget_published({second}, lambda: None)
        assert len(s3.keys("team/snapshots/t4/")) == 2
        mine.publish(second)
        erase_stored("t4")
        assert s3.keys("team/snapshots/t4/") == []
        erase_stored("never")


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_storage_that_is_away_is_waited_for(
    shared: Machines, s3: S3Server, tmp_path: Path
) -> None:
    with shared.on("a"):
        run = play(tmp_path, write("notes.md", "one"))
    make_silent("a")
    with shared.on("b"):
        declare_dead("a")
        s3.stop()
        with pytest.raises(StorageFailed):
            store_of(shared, "b", run.thread_id).load("0" * 64)
        later = start_run(User.objects.get(), thread=run.thread_id)
        with running_worker():
            wait_until(lambda: Run.objects.get(pk=later.pk).clock.lost_drivers > 0)
            s3.start()
            wait_until(lambda: Run.objects.get(pk=later.pk).status == "completed")
    assert (shared.workspace("b", run.thread) / "notes.md").read_text() == "one"


@pytest.mark.bubblewrap
def test_calls_succeed_without_the_storage(shared: Machines, s3: S3Server, tmp_path: Path) -> None:
    s3.stop()
    try:
        with shared.on("a"):
            run = play(tmp_path, write("notes.md", "one"))
        assert not run.thread.snapshots.get().is_stored
    finally:
        s3.start()
    with shared.on("a"):
        play(tmp_path, command("echo 2 > two"), thread=run.thread)
    assert run.thread.snapshots.last().is_stored
    # The next state includes the missing objects.
    assert len(s3.keys(f"team/snapshots/{run.thread_id}/objects/")) == 2


def test_addresses_of_storages() -> None:
    found = env.storages("s3://bucket/a/b?region_name=eu-central-1")["vel"]["OPTIONS"]
    assert found == {"bucket_name": "bucket", "location": "a/b", "region_name": "eu-central-1"}
    options = env.storages("file:///mnt/vel%20x")["vel"]["OPTIONS"]
    assert options["location"] == "/mnt/vel x"
    assert "vel" not in env.storages("")
    for wrong in ("s3://key:secret@bucket/x", "s3://b?acl=public-read", "ftp://x/y", "file://x/y"):
        with pytest.raises(ImproperlyConfigured):
            env.storages(wrong)
