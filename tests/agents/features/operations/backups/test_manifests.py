"""Manifests that somebody has changed or made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import (
    UnreadManifest,
    canonical,
    key_id,
    signing_key,
)
from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    measured,
    refused,
    state_of,
)
from tests.velproject.command import Vel

Body = dict[str, Any]


def foreign(body: Body) -> None:
    """Let the manifest be one that another installation has signed."""
    body["key_id"] = "0" * 16


def test_a_changed_manifest_is_refused_even_if_unsigned_ones_are_accepted(
    copied: Installation,
) -> None:
    copied.change_manifest(lambda body: body["files"].pop())
    assert "was changed after the backup was made" in refused(copied, "--accept-unsigned")


def test_a_manifest_of_another_installation_needs_an_explicit_option(copied: Installation) -> None:
    copied.change_manifest(foreign, "the key of somebody else")
    assert "not signed with the key of this installation" in refused(copied)
    vel = Vel(copied.base / "restored", {"VEL_SECRET_KEY": KEY})
    assert copied.restore(vel, "--accept-unsigned").returncode == 0


def test_a_manifest_of_a_newer_format_is_refused(copied: Installation) -> None:
    copied.change_manifest(lambda body: body.update(format=2), KEY)
    assert "has the format 2, and this version of Vel reads up to 1" in refused(copied)


def test_a_backup_of_a_newer_version_is_refused(copied: Installation) -> None:
    newer = ["agents", "9999_from_the_future"]
    copied.change_manifest(lambda body: body["database"]["migrations"].append(newer), KEY)
    assert "agents.9999_from_the_future" in refused(copied)


def test_half_a_manifest_is_refused(copied: Installation) -> None:
    data = copied.manifest.read_bytes()
    copied.manifest.write_bytes(data[: len(data) // 2])
    assert "is damaged or incomplete" in refused(copied, "--accept-unsigned")


def _path(path: str) -> Callable[[Body], None]:
    return lambda body: body["files"][0].update(path=path)


BAD_MANIFESTS: dict[str, Callable[[Body], object]] = {
    "a path above the directory": _path("workspaces/../../etc/passwd"),
    "an absolute path": _path("/etc/passwd"),
    "a path in no area": _path("secret_key"),
    "a path that is an area": _path("workspaces"),
    "a path with NUL": _path("workspaces/a\0b"),
    "a path with an empty part": _path("workspaces//a"),
    "a path in no directory": _path("workspaces/unknown/a"),
    "a directory above the area": lambda body: body["directories"][0].update(path=".."),
    "the same path twice": lambda body: body["files"].append(body["files"][0]),
    "a set-user-id mode": lambda body: body["files"][0].update(mode=0o4755),
    "a negative size": lambda body: body["files"][0].update(size=-1),
    "a size that is true": lambda body: body["files"][0].update(size=True),
    "a text as a size": lambda body: body["files"][0].update(size="9"),
    "a hash that is a path": lambda body: body["files"][0].update(sha256="../../../etc/passwd"),
    "an unknown field": lambda body: body.update(more=1),
    "an unknown field of a file": lambda body: body["files"][0].update(link="/etc/passwd"),
    "a missing field": lambda body: body.pop("directories"),
    "files that are no list": lambda body: body.update(files={"path": "x"}),
    "another name": lambda body: body.update(name="20200101T000000Z-00000000"),
}


@pytest.mark.parametrize("kind", BAD_MANIFESTS)
def test_invalid_manifests_are_refused(made: Installation, kind: str) -> None:
    body = json.loads(made.manifest.read_bytes())
    name = body["name"]
    UnreadManifest(name, canonical(body)).accept()
    BAD_MANIFESTS[kind](body)
    with pytest.raises(BackupRefused, match="is invalid"):
        UnreadManifest(name, canonical(body)).accept()


def test_a_manifest_under_another_name_is_refused_and_deletes_nothing(
    copied: Installation,
) -> None:
    name = "99999999T999999Z-00000000"
    copied.manifest.with_name(f"{name}.json").write_bytes(copied.manifest.read_bytes())
    before = state_of(copied.repository)
    assert f"{name} was changed after" in refused(copied)
    place = str(copied.repository)
    line = line_of(copied.vel("backup", "prune", "--from", place, "--apply"))
    assert f"vel backup delete {name}" in line
    assert state_of(copied.repository) == before
    assert copied.vel("backup", "delete", name, "--from", place).returncode == 0
    assert copied.verify().returncode == 0


END = '"format":1,"key_id":"{}","keys":null,"missing":[],"name":"{}","signature":"{}",'
LARGE = 20_000_000
"""Lists in a manifest of 60 MB. They would need 1.5 GB."""


def forged(name: str, files: bytes, key: str = "0" * 16) -> bytes:
    """Return a manifest of an attacker, who does not know the key of the installation."""
    end = END.format(key, name, "0" * 64) + '"skipped":{},"vel":"0.1.0"}'
    head = '{"created_at":"","database":{},"directories":[],"files":'
    return b"".join((head.encode(), files, b",", end.encode()))


def test_a_huge_manifest_of_an_attacker_needs_little_memory(copied: Installation) -> None:
    name = "99999999T999999Z-00000000"
    place = str(copied.repository)
    huge = forged(name, b"[" + b"[]," * LARGE + b"[]]")
    copied.manifest.with_name(f"{name}.json").write_bytes(huge)
    vel = copied.new(VEL_SECRET_KEY=KEY)
    done, most = measured(vel, "restore", "latest", "--from", place)
    assert "not signed with the key of this installation" in line_of(done)
    listed, most_of_list = measured(vel, "backup", "list", "--from", place)
    assert listed.stdout.splitlines()[0].startswith(f"{name}  not signed with the key")
    assert len(listed.stdout.splitlines()) == 2
    keep = ("--keep-daily", "1", "--apply")
    pruned, most_of_prune = measured(vel, "backup", "prune", "--from", place, *keep)
    assert pruned.returncode == 0, pruned.stderr
    assert max(most, most_of_list, most_of_prune) < 400


HOSTILE_VALUES = {
    "deep lists": b"[" * 1_000_000 + b"]" * 1_000_000,
    "deep objects": b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
    "a million digits": b"9" * 1_000_000,
    "a million digits after the point": b"0." + b"9" * 1_000_000,
    "a number without an end": b"1e999999999",
    "no number": b"NaN",
    "a million equal names": b"{" + b'"path":"a",' * 1_000_000 + b'"path":"b"}',
    "a million names": b"{" + b",".join(b'"%d":1' % n for n in range(1_000_000)) + b"}",
}


@pytest.mark.parametrize("kind", HOSTILE_VALUES)
def test_hostile_json_is_refused_even_if_unsigned_manifests_are_accepted(kind: str) -> None:
    name = "99999999T999999Z-00000000"
    for value in (HOSTILE_VALUES[kind], b'[{"size":%s}]' % HOSTILE_VALUES[kind]):
        unread = UnreadManifest(name, forged(name, value))
        assert not unread.is_signed_with([KEY])
        with pytest.raises(BackupRefused, match="is invalid"):
            unread.accept()


def test_hostile_json_does_not_end_other_commands(copied: Installation) -> None:
    own = key_id(signing_key(KEY))
    place = str(copied.repository)
    for number, value in enumerate(HOSTILE_VALUES.values()):
        name = f"99999999T999999Z-0000000{number}"
        copied.manifest.with_name(f"{name}.json").write_bytes(forged(name, value))
    listed = copied.vel("backup", "list", "--from", place).stdout.splitlines()
    assert len(listed) == len(HOSTILE_VALUES) + 1
    assert copied.vel("backup", "create", "--to", place).returncode == 0
    # One that claims to be of this installation stops the deletion of objects.
    copied.manifest.with_name(f"{name}.json").write_bytes(forged(name, value, own))
    keep = ("--from", place, "--keep-daily", "1", "--apply")
    assert f"vel backup delete {name}" in line_of(copied.vel("backup", "prune", *keep))


def test_the_signature_is_that_of_the_bytes_and_not_of_their_meaning(
    made: Installation,
) -> None:
    data = made.manifest.read_bytes()
    name = json.loads(data)["name"]
    assert UnreadManifest(name, data).is_signed_with([KEY])
    for changed in (
        data.replace(b'{"created_at":', b'{ "created_at":', 1),
        data.replace(b'{"created_at":', b'{"created_at":"","created_at":', 1),
        data.replace(b',"files":[', b',"files":[],"files":[', 1),
    ):
        assert json.loads(changed) == json.loads(data)
        assert not UnreadManifest(name, changed).is_signed_with([KEY])
    with pytest.raises(BackupRefused, match="damaged or incomplete"):
        UnreadManifest(name, data + b" ")


def test_objects_of_other_installations_stay_without_reading_their_manifests(
    copied: Installation,
) -> None:
    copied.change_manifest(foreign, "the key of somebody else")
    before = state_of(copied.repository / "objects")
    keep = ("--keep-daily", "1", "--apply")
    done = copied.vel("backup", "prune", "--from", str(copied.repository), *keep)
    assert done.returncode == 0, done.stderr
    assert state_of(copied.repository / "objects") == before
    assert before


def test_an_invalid_path_writes_nothing(copied: Installation) -> None:
    copied.change_manifest(_path("workspaces/../../../escaped"), KEY)
    assert "is invalid" in refused(copied)
    assert not (copied.base.parent / "escaped").exists()
