"""Directories of skills: changes are found, unchanged files cost little, races lose no change."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from agents.models import Run
from agents.spec import AgentSpec
from skills_app.actions import sync
from skills_app.actions.pins import pin_skills
from skills_app.actions.reviews import quarantine_version, review_version
from skills_app.actions.sync import changes_of, read_source, read_sources, sync_source
from skills_app.library.package import Package
from skills_app.library.scopes import BUILT_IN, directory_scope
from skills_app.library.sources import watch
from skills_app.models import Skill, SkillVersion, Trust
from tests.support.hang import HANG
from tests.support.runs import drive_to_end, events, make_agent, make_user, start_run
from tests.support.skills import package, skill_text, store_skill, write_skill

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose files count as settled immediately, so that tests need not wait."""
    monkeypatch.setattr(watch, "SETTLED_NS", -1_000_000_000)
    made = tmp_path / "skills"
    made.mkdir()
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the packages that are read completely, not only checked for changes."""
    seen: list[str] = []
    whole = watch.package_in

    def noted(descriptor: int, name: str) -> object:
        seen.append(name)
        return whole(descriptor, name)

    monkeypatch.setattr(watch, "package_in", noted)
    return seen


def synced(directory: Path) -> dict[str, str]:
    """Synchronise `directory` and return the names and hashes of its rows."""
    read = read_source(directory_scope(str(directory)))
    sync_source(read)
    rows = Skill.objects.filter(scope=read.scope, is_deleted=False)
    return dict(rows.values_list("name", "current__content_hash"))


def restored(path: Path, data: bytes) -> None:
    """Write `path` and restore its times, as a person who hides an edit does."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_unchanged_directory_is_not_read_again(directory: Path, reads: list[str]) -> None:
    write_skill(directory, files={"scripts/a.py": "print(1)"})
    write_skill(directory, "peas")
    first = synced(directory)
    assert reads == ["beans", "peas"]
    assert synced(directory) == first
    assert reads == ["beans", "peas"]
    held = [found for found, _ in sync._remembered[directory_scope(str(directory))].values()]
    assert [found.package for found in held if found] == [None, None]  # no contents are kept


def test_each_kind_of_change_is_seen_and_only_that_package_read(
    directory: Path, reads: list[str]
) -> None:
    folder = write_skill(directory, files={"scripts/a.py": "print(1)"})
    write_skill(directory, "peas")
    before = synced(directory)
    script = folder / "scripts" / "a.py"

    restored(script, b"print(2)")  # the same size, the same time
    after = synced(directory)
    assert after["beans"] != before["beans"]

    other = folder / "scripts" / "b.py"
    other.write_text("print(3)")
    os.utime(other, ns=(0, script.stat().st_mtime_ns))
    other.rename(script)
    assert synced(directory)["beans"] != after["beans"]

    script.chmod(0o755)
    executable = synced(directory)["beans"]
    script.chmod(0o644)
    assert synced(directory)["beans"] != executable

    reads.clear()
    (folder / "SKILL.md").touch()
    same = synced(directory)
    assert reads == ["beans"]
    assert synced(directory) == same
    folder.rename(directory / "renamed")
    (directory / "renamed" / "SKILL.md").write_text(skill_text("renamed"))
    assert set(synced(directory)) == {"renamed", "peas"}
    assert "peas" not in reads
    (directory / "renamed" / "SKILL.md").unlink()
    assert set(synced(directory)) == {"peas"}


def test_a_recently_written_file_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    # Two edits within one step of the file system's clock could not be distinguished.
    write_skill(tmp_path)
    synced(tmp_path)
    synced(tmp_path)
    assert reads == ["beans", "beans"]


def test_a_package_that_changes_while_it_is_read_is_read_once_more(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill(directory)
    whole = watch.package_in
    edits = iter(["Twice.", "Thrice."])

    def edited(descriptor: int, name: str) -> tuple[Package | None, object]:
        found = whole(descriptor, name)
        if (body := next(edits, "")) != "":
            (folder / "SKILL.md").write_text(skill_text(body=body))
        return found

    monkeypatch.setattr(watch, "package_in", edited)
    read = read_source(directory_scope(str(directory)))
    assert read.packages[0].package is not None
    assert "Thrice." in read.packages[0].package.text
    edits = iter(map(str, range(100)))
    (folder / "SKILL.md").touch()
    read = read_source(directory_scope(str(directory)))
    assert [problem.code for problem in read.problems["beans"]] == ["changing"]
    # No row is deleted for a package that the next synchronisation may read completely.
    sync_source(read)
    assert not Skill.objects.filter(is_deleted=True).exists()


def test_a_package_that_becomes_bad_leaves_the_next_run_and_stays_with_the_last(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_skill(directory, body="Count.")
    write_skill(directory, "peas")
    user = make_user()
    make_agent(user)
    first = drive_to_end(start_run(user, skill_directories=(str(directory),)))
    (folder / "SKILL.md").write_text("half of a file")
    with caplog.at_level(logging.WARNING, "skills_app.runs.session"):
        second = drive_to_end(start_run(user, thread=first.thread_id))
    assert names(first) == ["beans", "peas"]
    assert names(second) == ["peas"]
    assert "gone: beans" in second.opening_note
    told = events(second, "skills.skipped")[0]
    assert [problem["skill"] for problem in told["problems"]] == ["beans"]
    assert "beans" in caplog.text
    assert second.pk in [getattr(record, "run_id", "") for record in caplog.records]
    assert "Count." in str(first.pinned.skill_set.entries.get(name="beans").version.content)


def names(run: Run) -> list[str]:
    return list(run.pinned.skill_set.entries.values_list("name", flat=True))


def test_a_missing_directory_gives_no_skills_and_deletes_none(directory: Path) -> None:
    write_skill(directory)
    user = make_user()
    make_agent(user)
    first = drive_to_end(start_run(user, skill_directories=(str(directory),)))
    directory.rename(directory.with_name("elsewhere"))
    second = drive_to_end(start_run(user, thread=first.thread_id))
    assert second.status == "completed"
    assert names(second) == []
    assert "does not exist" in events(second, "skills.skipped")[0]["problems"][0]["message"]
    assert not Skill.objects.filter(is_deleted=True).exists()
    directory.with_name("elsewhere").rename(directory)
    assert names(drive_to_end(start_run(user, thread=first.thread_id))) == ["beans"]


def test_a_directory_in_the_agents_workspace_is_refused_by_the_run_too(
    directory: Path, tmp_path: Path
) -> None:
    write_skill(directory)
    user = make_user()
    make_agent(user)
    run = start_run(user, workspace_path=str(tmp_path / "work"))
    thread = run.thread
    thread.skill_directories = [str(directory)]
    thread.workspace_path = str(directory.parent)
    thread.save()
    run = drive_to_end(run)
    assert names(run) == []
    assert "overlap" in events(run, "skills.skipped")[0]["problems"][0]["message"]


@contextmanager
def ordinary_account() -> Iterator[None]:
    """Use another account during the block if this one is root, which can read all files."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


def test_an_unreadable_package_is_reported_and_not_deleted() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        folder = write_skill(place)
        secret = write_skill(place, "peas", {"secret.txt": "x"}) / "secret.txt"
        write_skill(place, "stew")
        synced(place)
        folder.chmod(0o700 if os.geteuid() == 0 else 0)
        secret.chmod(0o600 if os.geteuid() == 0 else 0)
        with ordinary_account():
            read = read_source(directory_scope(name))
        folder.chmod(0o755)
    assert list(read.names) == ["stew"]
    assert {place: problems[0].code for place, problems in read.problems.items()} == {
        "beans": "unreadable",
        "peas": "unreadable",
    }
    sync_source(read)
    assert not Skill.objects.filter(is_deleted=True).exists()


def test_bytes_in_quarantine_do_not_come_back_from_the_directory(directory: Path) -> None:
    write_skill(directory)
    synced(directory)
    Skill.objects.update(current=None)
    SkillVersion.objects.update(trust=Trust.QUARANTINED)
    user = make_user()
    make_agent(user)
    run = drive_to_end(start_run(user, skill_directories=(str(directory),)))
    assert names(run) == []
    assert "quarantine" in events(run, "skills.skipped")[0]["problems"][0]["message"]
    assert SkillVersion.objects.count() == 1
    write_skill(directory, body="Mended.")
    assert names(drive_to_end(start_run(user, thread=run.thread_id))) == ["beans"]


def test_a_review_of_the_same_bytes_elsewhere_ends_their_quarantine(directory: Path) -> None:
    beans = package(directory)
    synced(directory)
    reviewer = make_user("rhea", is_superuser=True)
    quarantine_version(SkillVersion.objects.get().pk, by=reviewer, reason="It looked bad.")
    assert synced(directory) == {"beans": None}
    copy = store_skill(beans)
    assert copy.trust == Trust.QUARANTINED
    review_version(copy.pk, by=reviewer, content_hash=copy.content_hash)
    assert synced(directory) == {"beans": copy.content_hash}
    current = Skill.objects.get(scope=directory_scope(str(directory))).current
    assert current is not None
    assert current.trust == Trust.LOCAL
    quarantine_version(copy.pk, by=reviewer, reason="It is bad.")
    assert synced(directory) == {"beans": None}


def test_a_release_brings_new_versions_and_old_runs_keep_theirs(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BUILT_IN_DIRECTORY", directory)
    write_skill(directory, body="Old.")
    user = make_user()
    make_agent(user, builtin_skills=True)
    first = drive_to_end(start_run(user))
    write_skill(directory, body="New.")
    second = drive_to_end(start_run(user, thread=first.thread_id))
    versions = list(SkillVersion.objects.filter(skill__scope=BUILT_IN).order_by("number"))
    assert [version.trust for version in versions] == ["built-in", "built-in"]
    assert [entry.version for entry in first.pinned.skill_set.entries.all()] == versions[:1]
    assert [entry.version for entry in second.pinned.skill_set.entries.all()] == versions[1:]


@pytest.mark.slow
def test_without_changes_a_run_needs_a_fixed_number_of_queries(
    directory: Path,
) -> None:
    user = make_user()
    make_agent(user)

    def queries(skills: int) -> int:
        for number in range(skills):
            write_skill(directory, f"skill-{number}")
        first = drive_to_end(start_run(user, skill_directories=(str(directory),)))
        run = Run.objects.get(pk=start_run(user, thread=first.thread_id).pk)
        spec = AgentSpec.model_validate(run.agent_version.spec)
        found = read_sources([str(directory)], built_in=False)
        with CaptureQueriesContext(connection) as captured:
            assert not any(changes_of(read) for read in found)
            pin_skills(run, spec, found)
        assert len(names(run)) == skills
        Run.objects.filter(pk=run.pk).update(status="cancelled")
        return len(captured)

    few, many = queries(2), queries(40)
    assert few == many <= 10


STORE = """
import sys, django
django.setup()
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
from django.db import connection
connection.settings_dict["NAME"] = sys.argv[1]
from skills_app.library.problems import SkillChanged
from skills_app.actions.sync import changes_of, read_source, sync_source
read = read_source(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
while changes_of(read):
    try:
        sync_source(read)
    except SkillChanged:
        print("lost a race", flush=True)
"""


@pytest.mark.slow
def test_processes_can_store_the_same_directory_concurrently(directory: Path) -> None:
    for number in range(25):
        write_skill(directory, f"skill-{number}", {"a.txt": f"{number}", "same.txt": "same"})
    scope = directory_scope(str(directory))
    arguments = [sys.executable, "-c", STORE, str(connection.settings_dict["NAME"]), scope]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    running = [
        subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        _, errors = process.communicate(timeout=HANG)
        assert process.returncode == 0, errors
    assert Skill.objects.filter(scope=scope, is_deleted=False).count() == 25
    assert SkillVersion.objects.count() == 25
    assert set(SkillVersion.objects.values_list("number", "file_count")) == {(1, 3)}


def test_directories_of_the_settings_come_before_those_of_the_caller(
    directory: Path, tmp_path: Path
) -> None:
    write_skill(directory, body="Ours.")
    theirs = tmp_path / "theirs"
    write_skill(theirs, body="Theirs.")
    write_skill(theirs, "peas")
    user = make_user()
    make_agent(user)
    with override_settings(VEL_SKILLS={"DIRECTORIES": (str(directory),)}):
        run = drive_to_end(start_run(user, skill_directories=(str(theirs),)))
    assert names(run) == ["beans", "peas"]
    assert "Ours." in str(run.pinned.skill_set.entries.get(name="beans").version.content)
    told = events(run, "skills.skipped")[0]["problems"]
    assert [problem["skill"] for problem in told] == ["beans"]
    assert str(theirs) in told[0]["message"]
