"""`vel skills` with the library: reading, importing, exporting and reviewing."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from agents.doors.cli.local_user import local_user
from agents.models import Agent
from skills_app.actions.library import import_skill
from skills_app.models import Skill, SkillVersion, Trust
from tests.support.runs import make_agent, make_user
from tests.support.skills import package, write_skill
from tests.velproject.command import Terminal, Vel
from velproject.cli.main import run_command_line

Here = Callable[..., tuple[int, str, str]]

ESCAPES = "\x1b]0;owned\x07\u202ehidden\u200b"


@pytest.fixture
def here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Here:
    """Return a function that runs `vel skills` here: (exit code, stdout, stderr)."""
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = run_command_line(["skills", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def me(db: None) -> User:
    return local_user()


@pytest.fixture
def librarian(me: User) -> User:
    """This account, with the permissions for the library."""
    names = ["manage_library", "review_skill"]
    me.user_permissions.set(Permission.objects.filter(codename__in=names))
    return User.objects.get(pk=me.pk)


@pytest.fixture
def agent(me: User) -> Agent:
    return make_agent(me)


def zipped(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, f"{folder.name}/{file.relative_to(folder)}")
    return target


def in_library(directory: Path, by: User, name: str = "beans", **options: object) -> SkillVersion:
    return import_skill(package(directory, name, **options), by=by, source="cli").version


# Import


def test_each_package_is_a_line_and_a_refused_one_sets_the_exit_code(
    here: Here, librarian: User, tmp_path: Path
) -> None:
    many = tmp_path / "many"
    write_skill(many, "beans")
    write_skill(many, "peas")
    write_skill(many, "broken", text="no head at all\n")
    packed = zipped(write_skill(tmp_path / "one", "lentils"), tmp_path / "lentils.skill")
    code, shown, errors = here("import", "many", str(packed))
    assert (code, errors) == (1, "")
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" " * 10 + "error")] == [
        "imported",
        "refused",
        "imported",
        "imported",
        "3",
    ]
    assert "error: SKILL.md: A skill starts with a head" in shown
    assert lines[-1] == "3 imported, 1 refused."
    assert sorted(Skill.objects.values_list("name", flat=True)) == ["beans", "lentils", "peas"]
    assert Skill.objects.get(name="lentils").current.origin.endswith("lentils.skill")
    code, shown, _ = here("import", "many/beans")
    assert (code, shown.split()[:4], shown.splitlines()[-1]) == (
        0,
        ["same", "many/beans:", "beans", "v1,"],
        "1 same.",
    )


def test_a_dry_run_shows_problems_and_findings_and_stores_nothing(
    here: Here, me: User, tmp_path: Path
) -> None:
    write_skill(tmp_path, "beans", body=f"Count. {ESCAPES}")
    (tmp_path / "beans").rename(tmp_path / "other")
    code, shown, _ = here("import", "other", "--dry-run")
    assert code == 0
    assert "must match skill name" in shown
    assert "Findings:" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not Skill.objects.exists()


def test_without_the_right_nothing_goes_into_the_library(
    here: Here, me: User, agent: Agent, tmp_path: Path
) -> None:
    write_skill(tmp_path, "beans")
    code, _, errors = here("import", "beans")
    assert (code, "manage_library" in errors, "vel user create" in errors) == (2, True, True)
    me.user_permissions.set(Permission.objects.filter(codename="manage_library"))
    code, _, errors = here("import", "beans", "--accept")
    assert (code, "review_skill" in errors) == (2, True)
    assert not Skill.objects.exists()
    assert here("import", "beans", "--agent", "tester")[0] == 0
    assert Skill.objects.get().agent == agent


def test_commands_need_permission_for_the_agent(here: Here, me: User, tmp_path: Path) -> None:
    other = make_agent(make_user("bob"), slug="other", everyone=True)
    hidden = make_agent(make_user("eve"), slug="hidden")
    write_skill(tmp_path, "beans")
    for slug, word in (("other", "Only the owner"), ("hidden", "no agent")):
        code, _, errors = here("import", "beans", "--agent", slug)
        assert (code, word in errors) == (2, True), errors
    import_skill(package(tmp_path / "x", "secrets"), by=hidden.owner, source="web", agent=hidden)
    import_skill(package(tmp_path / "x", "open"), by=other.owner, source="web", agent=other)
    assert "secrets" not in here("list")[1]
    assert here("show", "secrets")[0] == 2
    code, _, errors = here("disable", "open", "--agent", "other")
    assert (code, "Only the owner" in errors) == (2, True)
    code, _, errors = here("delete", "open", "--agent", "other")
    assert (code, "Only the owner" in errors) == (2, True)


@pytest.mark.parametrize("path", ["missing", "empty", "text.txt", "pipe"])
def test_an_invalid_package_is_reported_immediately(
    here: Here, librarian: User, tmp_path: Path, path: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("hello")
    os.mkfifo(tmp_path / "pipe")
    code, shown, errors = here("import", path)
    assert code in (1, 2)
    assert shown or errors
    assert not Skill.objects.exists()


# Read


def test_text_of_a_package_is_escaped_for_terminals(vel: Vel) -> None:
    write_skill(
        vel.data,
        "beans",
        files={"a.txt": f"one {ESCAPES}"},
        body=f"Hello {ESCAPES}",
        # Control characters in the frontmatter are refused; bidirectional characters are accepted.
        description="Counts \u202ebeans\u200b.",
    )
    assert vel("--provider", "scripted", "--model", "echo", "--no-sandbox", "x").returncode == 0
    slug = str(vel.value("SELECT slug FROM agents_agent WHERE slug LIKE 'cli-%'"))
    done = vel("skills", "import", "beans", "--agent", slug)
    assert vel.value("SELECT count(*) FROM skills_app_skill WHERE name='beans'") == 1, done.stdout
    # Dangerous packages wait in quarantine, but people can look at them.
    assert "\x1b" not in done.stdout + done.stderr
    for arguments in (
        ("list",),
        ("list", "--agent", slug),
        ("show", "beans"),
        ("show", "beans", "--file", "SKILL.md"),
        ("show", "beans", "--file", "a.txt"),
        ("usage", "beans"),
    ):
        terminal = Terminal(vel, "skills", *arguments)
        assert terminal.finish() == 0, terminal.tail
        shown = terminal.shown
        assert "\x1b]0;owned" not in shown, arguments
        assert "\u202e" not in shown, arguments
        assert "\u200b" not in shown, arguments
    raw = vel("skills", "show", "beans", "--file", "a.txt")
    assert raw.stdout == f"one {ESCAPES}"


def test_names_in_several_places_are_distinguished(
    here: Here, librarian: User, agent: Agent, tmp_path: Path
) -> None:
    other = make_agent(librarian, slug="second")
    import_skill(package(tmp_path / "a", "beans"), by=librarian, source="cli", agent=agent)
    import_skill(package(tmp_path / "b", "beans"), by=librarian, source="cli", agent=other)
    code, _, errors = here("show", "beans")
    assert code == 2
    assert "second:beans, tester:beans" in errors
    code, shown, _ = here("show", "tester:Beans")
    assert (code, "tester" in shown) == (0, True)
    assert here("show", "beans", "--agent", "second")[0] == 0
    assert here("show", "nowhere:beans")[0] == 2


def test_the_list_and_json_are_the_same(here: Here, librarian: User, tmp_path: Path) -> None:
    in_library(tmp_path / "a", librarian)
    in_library(tmp_path / "b", librarian, body="Count twice.")
    rows = [json.loads(line) for line in here("list", "--json")[1].splitlines()]
    (row,) = [row for row in rows if row["from"] == "library"]
    assert (row["version"], row["latest_version"], row["waits"]) == (1, 2, True)
    assert (row["trust"], row["name"]) == ("imported", "beans")
    assert "1 (2 waits)" in here("list")[1]
    shown = json.loads(here("show", "beans", "--json")[1])
    assert [file["path"] for file in shown["files"]] == ["SKILL.md"]


# Switch on and off


def test_a_skill_is_given_to_an_agent_and_taken_away(
    here: Here, librarian: User, agent: Agent, tmp_path: Path
) -> None:
    in_library(tmp_path, librarian)

    def state() -> str:
        rows = map(json.loads, here("list", "--agent", "tester", "--json")[1].splitlines())
        return str(next(row["state"] for row in rows if row["name"] == "beans"))

    assert state() == "off"
    assert here("enable", "beans", "--agent", "tester")[0] == 0
    assert state() == "on"
    assert here("disable", "beans", "--agent", "tester")[0] == 0
    assert state() == "off"
    code, _, errors = here("delete", "beans", "--agent", "tester")
    assert (code, "disable" in errors) == (2, True)
    assert here("delete", "beans")[0] == 0
    assert Skill.objects.get(name="beans").is_deleted


def test_an_own_skill_that_loses_its_name_is_reported(
    here: Here, librarian: User, agent: Agent, tmp_path: Path
) -> None:
    import_skill(package(tmp_path / "a", "beans"), by=librarian, source="cli", agent=agent)
    in_library(tmp_path / "b", librarian, body="Another.")
    assert here("enable", "library:beans", "--agent", "tester")[0] == 0
    code, _, errors = here("enable", "tester:beans", "--agent", "tester")
    assert (code, "comes first" in errors) == (0, True)


# Review


def test_a_review_is_bound_to_the_bytes(here: Here, librarian: User, tmp_path: Path) -> None:
    in_library(tmp_path / "a", librarian, files={"run.sh": "#!/bin/sh\necho one\n"})
    second = in_library(tmp_path / "b", librarian, files={"run.sh": "#!/bin/sh\necho two\n"})
    code, shown, errors = here("review", "beans")
    assert (code, second.content_hash in errors) == (2, True)
    assert "-echo one" in shown.replace("- ", "-").replace("│", "")
    assert "echo two" in shown
    assert "All of it:" in shown
    code, _, errors = here("review", "beans", "--hash", "0" * 64)
    assert (code, "look again" in errors) == (2, True)
    assert here("review", "beans", "--hash", second.content_hash[:12])[0] == 2
    assert Skill.objects.get(name="beans").current.number == 1
    code, shown, _ = here("review", "beans", "--hash", second.content_hash)
    assert (code, shown) == (0, "beans v2 is reviewed.\n")
    skill = Skill.objects.get(name="beans")
    assert (skill.current.number, skill.current.trust) == (2, Trust.REVIEWED)
    assert skill.current.reviewed_by == librarian


def test_the_owner_of_a_file_has_all_rights_in_it(vel: Vel) -> None:
    write_skill(vel.data, "beans")
    done = vel("skills", "import", "beans")
    assert (done.returncode, "makes this account an administrator" in done.stderr) == (2, True)
    done = vel("skills", "import", "beans", "--persist", "own.db", cwd=vel.data)
    assert (done.returncode, "imported" in done.stdout) == (0, True), done.stderr
    done = vel("skills", "delete", "beans", "--persist", "own.db", cwd=vel.data)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_review_asks_and_an_empty_line_accepts_nothing(vel: Vel) -> None:
    write_skill(vel.data, "beans")
    assert vel("runs", "list").returncode == 0
    vel.execute("UPDATE auth_user SET is_superuser = 1")
    done = vel("skills", "import", "beans")
    assert done.returncode == 0, done.stderr
    for typed, code, trust in (("\n", 2, "imported"), ("y\n", 0, "reviewed")):
        terminal = Terminal(vel, "skills", "review", "beans")
        terminal.expect("Accept all of this as reviewed?")
        terminal.type(typed)
        assert terminal.finish() == code
        assert vel.value("SELECT trust FROM skills_app_skillversion WHERE source='cli'") == trust


def test_quarantine_restores_the_earlier_version_and_reviews_need_permission(
    here: Here, librarian: User, tmp_path: Path
) -> None:
    in_library(tmp_path / "a", librarian)
    second = in_library(tmp_path / "b", librarian, body="Evil.")
    here("review", "beans", "--hash", second.content_hash)
    code, shown, _ = here("quarantine", "beans", "--reason", "It is evil")
    assert (code, "Agents get version 1" in shown) == (0, True)
    assert here("export", "beans", "x.zip", "--version", "2")[0] == 2
    librarian.user_permissions.clear()
    for arguments in (
        ("review", "beans", "--hash", second.content_hash),
        ("quarantine", "beans", "--reason", "x"),
        ("delete", "beans"),
    ):
        code, _, errors = here(*arguments)
        assert (code, "permission" in errors) == (2, True), errors


# Export


def test_out_and_in_again_is_the_same(here: Here, librarian: User, tmp_path: Path) -> None:
    first = in_library(tmp_path / "a", librarian, files={"scripts/run.sh": "#!/bin/sh\n"})
    assert here("export", "beans")[0] == 0
    assert here("export", "beans")[0] == 2, "never over a file that is there"
    (tmp_path / "out").mkdir()
    assert here("export", "beans", "out")[0] == 0
    assert here("export", "beans", "out")[0] == 2
    assert (tmp_path / "out/beans/scripts/run.sh").stat().st_mode & 0o111
    for path in ("beans.zip", "out/beans"):
        assert here("import", path)[1].split()[0] == "same"
    assert SkillVersion.objects.filter(content_hash=first.content_hash).count() == 1


def test_usage_lists_each_version(here: Here, librarian: User, tmp_path: Path) -> None:
    in_library(tmp_path, librarian)
    (row,) = [json.loads(line) for line in here("usage", "beans", "--json")[1].splitlines()]
    assert row == {"version": 1, "shown": 0, "loaded": 0, "files": 0, "endings": {}}
