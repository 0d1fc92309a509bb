"""Backups in a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    whole_runs,
)
from tests.support.s3 import BUCKET, KEYS, S3Server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


def test_a_backup_in_a_bucket_is_checked_restored_and_pruned(
    installation: Installation, s3: S3Server
) -> None:
    place = s3.storage_url.replace("/team", "/backups")
    keys = {**KEYS, "AWS_EC2_METADATA_DISABLED": "1"}
    installation.vel.environment.update(keys, VEL_BACKUP_TO=place)
    assert installation.vel("backup", "create").returncode == 0
    count = len(s3.keys("backups/objects/"))
    assert count > 3
    (second,) = installation.vel.rows("backup", "create")
    assert second["new_objects"] == 0
    assert len(s3.keys("backups/objects/")) == count
    assert len(s3.keys("backups/snapshots/")) == 2
    assert s3.keys("backups/locks/") == []
    assert installation.vel("backup", "verify").returncode == 0

    vel = installation.new(VEL_SECRET_KEY=KEY, VEL_BACKUP_TO=place, **keys)
    done = vel("restore", "latest")
    assert done.returncode == 0, done.stderr
    assert len(whole_runs(vel.data / "vel.sqlite3")) > 5

    (pruned,) = installation.vel.rows("backup", "prune", "--keep-daily", "1", "--apply")
    assert (len(pruned["deleted"]), pruned["kept"]) == (1, [second["name"]])
    assert installation.vel("backup", "verify").returncode == 0

    s3.client.put_object(Bucket=BUCKET, Key="backups/locks/use-other", Body=b"{}")
    line = line_of(installation.vel("backup", "prune", "--apply"))
    assert "Another backup, check or restore uses backups" in line
    s3.client.delete_object(Bucket=BUCKET, Key="backups/locks/use-other")
    s3.client.put_object(Bucket=BUCKET, Key="backups/locks/prune-other", Body=b"{}")
    assert "deletes old backups" in line_of(installation.vel("backup", "create"))
    s3.client.delete_object(Bucket=BUCKET, Key="backups/locks/prune-other")

    (key,) = (key for key in s3.keys("backups/snapshots/"))
    body = s3.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    s3.client.put_object(Bucket=BUCKET, Key=key, Body=body[:-20])
    assert "damaged or incomplete" in line_of(installation.vel("backup", "verify"))


def test_a_bucket_that_cannot_be_used_is_named(installation: Installation, s3: S3Server) -> None:
    installation.vel.environment.update(KEYS, AWS_EC2_METADATA_DISABLED="1")
    place = s3.storage_url.replace(f"s3://{BUCKET}", "s3://nothing-here")
    line = line_of(installation.vel("backup", "create", "--to", place))
    assert "The storage s3://nothing-here/team refused" in line
    line = line_of(installation.vel("backup", "create", "--to", "s3://user:secret@bucket/x"))
    assert "secret" not in line
