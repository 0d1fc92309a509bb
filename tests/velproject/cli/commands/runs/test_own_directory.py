"""`vel --workspace DIR`: protected files stay unchanged, and the report lists the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.sandbox.own_directory.checkouts import as_user, contents, make_checkout
from tests.sandbox.places import reachable_directory
from tests.velproject.cli.commands.runs.test_subagents import create_team, tasks
from tests.velproject.command import Vel, say

pytestmark = pytest.mark.bubblewrap

HEADING = "These files can run outside the sandbox later. Check them first:"


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        yield path


def run_commands(vel: Vel, project: Path, *commands: str, flags: tuple[str, ...] = ()) -> str:
    """Run these commands as a scripted run, and return its standard error."""
    turns = [say("", ("execute", {"command": command})) for command in commands]
    given = vel.script(*turns, say("Done."))
    done = vel(*given, "--workspace", str(project), *flags, "work")
    assert done.returncode == 0, done.stderr
    return done.stderr


def reported(stderr: str) -> list[str]:
    """Return the files of the report, as `created PATH`, without the files that were put aside."""
    if HEADING not in stderr:
        return []
    lines = stderr.partition(HEADING)[2].splitlines()[1:]
    files = takewhile(lambda line: line.startswith("  "), lines)
    shown = [line for line in files if "put aside" not in line]
    return [" ".join(line.split()[:2]) for line in shown]


HOSTILE = (
    "printf '#!/bin/sh\\ntouch /var/tmp/owned\\n' > .git/hooks/pre-commit; "
    "chmod +x .git/hooks/pre-commit; mv .git g; git config core.fsmonitor evil; "
    "echo evil > .envrc; mkdir -p .vscode .github/workflows .husky .claude; "
    "echo evil > .vscode/tasks.json; echo evil > .github/workflows/ci.yml; "
    "echo evil > .husky/pre-commit; echo evil > .claude/settings.json; echo evil > .bashrc; "
    "echo evil > .mcp.json; echo evil > .npmrc; echo evil > .pre-commit-config.yaml"
)
PROTECTED = {
    *(".envrc", ".vscode", ".github", ".husky", ".claude", ".bashrc", ".mcp.json", ".npmrc"),
    ".pre-commit-config.yaml",
}


def test_a_git_checkout_is_as_it_was_after_a_hostile_run(vel: Vel, place: Path) -> None:
    project = make_checkout(place, more="echo user > .envrc && mkdir .vscode && echo > .vscode/a")
    hooks, config = contents(project / ".git/hooks"), (project / ".git/config").read_text()
    stderr = run_commands(vel, project, HOSTILE, HOSTILE)
    assert contents(project / ".git/hooks") == hooks
    assert (project / ".git/config").read_text() == config
    assert (project / ".envrc").read_text() == "user\n"
    assert contents(project / ".vscode").keys() == {"a"}
    there = {path.name for path in project.iterdir()}
    assert there & PROTECTED == {".envrc", ".vscode"}
    assert reported(stderr) == []
    assert "created .bashrc.vel-blocked (put aside: no program runs it with this name)" in stderr


@pytest.mark.slow
def test_a_node_project(vel: Vel, place: Path) -> None:
    project = make_checkout(
        place,
        more="echo '{\"scripts\": {}}' > package.json && mkdir -p node_modules/a packages/b && "
        "echo > node_modules/a/index.js && echo user > packages/b/.npmrc && echo > .npmrc && "
        "printf node_modules > .gitignore",
    )
    stderr = run_commands(
        vel,
        project,
        f"{HOSTILE}; echo evil > node_modules/a/index.js; echo evil > packages/b/.npmrc; "
        'echo \'{"scripts": {"prepare": "evil"}}\' > package.json; echo > eslint.config.js; '
        "mv packages p; echo 'fine' > index.js",
    )
    assert (project / "packages/b/.npmrc").read_text() == "user\n"
    assert (project / ".npmrc").read_text() == "\n"
    assert reported(stderr) == [
        "created eslint.config.js",
        "changed node_modules",
        "changed package.json",
    ]


@pytest.mark.slow
def test_a_python_project(vel: Vel, place: Path) -> None:
    project = make_checkout(
        place,
        more="echo > pyproject.toml && mkdir -p .venv/bin tests && echo > .venv/bin/python && "
        "echo > .venv/pyvenv.cfg && echo > tests/test_a.py && echo .venv > .gitignore",
    )
    stderr = run_commands(
        vel,
        project,
        f"{HOSTILE}; echo evil > .venv/bin/python; echo evil > tests/conftest.py; "
        "echo evil > sitecustomize.py; mkdir __pycache__; echo evil > __pycache__/a.pyc; "
        "echo evil >> pyproject.toml; echo fine > app.py; echo fine >> tests/test_a.py",
    )
    assert reported(stderr) == [
        "changed .venv",
        "created __pycache__",
        "changed pyproject.toml",
        "created sitecustomize.py",
        "created tests/conftest.py",
    ]


def test_a_new_repository_with_a_hook_is_reported(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    stderr = run_commands(
        vel,
        project,
        "git init -q sub; echo evil > sub/.git/hooks/pre-commit; git init -q fine; "
        "git -C sub config core.fsmonitor evil",
        "git init -q a/b/c; echo evil > a/b/c/.git/hooks/post-checkout",
    )
    assert reported(stderr) == [
        "created a/b/c/.git/hooks/post-checkout",
        "created sub/.git/config",
        "created sub/.git/hooks/pre-commit",
    ]


def test_a_protected_file_in_a_commit_or_in_the_index_is_reported(vel: Vel, place: Path) -> None:
    project = make_checkout(place, more="mkdir .github && echo user > .github/ci.yml")
    add = "git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),"
    stderr = run_commands(
        vel,
        project,
        f"{add}.github/ci.yml; {add}source.txt; git commit -qm evil; git reset -q HEAD~1",
        f"{add}.envrc; {add}a/.vscode/x; git commit -qm two; {add}.npmrc; git status --short",
        "git checkout -qb other; git update-ref refs/heads/third HEAD~1",
    )
    assert reported(stderr) == [
        "committed .envrc",
        "committed a/.vscode/x",
        "committed .npmrc",
    ]
    assert "a CI definition" not in stderr  # no branch contains that commit
    stderr = run_commands(vel, project, "git reset -q; echo 2 > source.txt; git commit -qam fine")
    assert reported(stderr) == []


@pytest.mark.slow
def test_flags_open_and_protect_files_for_one_run(vel: Vel, place: Path) -> None:
    project = make_checkout(place, more="echo user > deploy.sh")
    command = "mkdir -p .github; echo new > .github/ci.yml; echo evil > deploy.sh"
    flags = ("--allow-write", ".github", "--protect", "deploy.sh", "--session", "one")
    stderr = run_commands(vel, project, command, flags=flags)
    assert (project / ".github/ci.yml").read_text() == "new\n"
    assert (project / "deploy.sh").read_text() == "user\n"
    assert reported(stderr) == ["created .github"]
    again = "echo evil > .github/ci.yml; echo changed > deploy.sh"
    stderr = run_commands(vel, project, again, flags=("--session", "one"))
    assert (project / ".github/ci.yml").read_text() == "new\n"
    assert (project / "deploy.sh").read_text() == "changed\n"
    assert reported(stderr) == []


def test_file_tools_are_refused_with_a_reason(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    flags = vel.script(
        say("", ("write_file", {"path": ".git/hooks/pre-commit", "content": "evil"})),
        say("", ("write_file", {"path": ".github/workflows/ci.yml", "content": "evil"})),
        say("", ("write_file", {"path": "package.json", "content": "{}"})),
        say("Done."),
    )
    done = vel(*flags, "--workspace", str(project), "work")
    assert ".git is a git repository" in done.stderr
    assert ".github is a CI definition" in done.stderr
    assert reported(done.stderr) == ["created package.json"]
    assert not (project / ".github").exists()


@pytest.mark.slow
def test_the_report_is_an_event(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    flags = vel.script(say("", ("execute", {"command": "echo > Makefile"})), say("Done."))
    done = vel(*flags, "--workspace", str(project), "--json", "work")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (event,) = [event for event in events if event["type"] == "workspace.runs_outside"]
    assert event["data"] == {
        "changes": [{"path": "Makefile", "what": "created", "why": "a build or test definition"}],
        "count": 1,
        "incomplete": [],
    }
    assert events.index(event) < len(events) - 1
    assert not list(vel.data.rglob("own_directory.json"))


@pytest.mark.slow
def test_a_run_that_fails_reports_as_well(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    turns = [say("", ("execute", {"command": "echo > Makefile"}))] * 2
    flags = vel.script(*turns)
    done = vel(*flags, "--workspace", str(project), "--max-turns", "1", "work")
    assert done.returncode == 4
    assert reported(done.stderr) == ["created Makefile"]


def test_a_waiting_run_reports_its_changes_so_far(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    flags = vel.script(
        say("", ("execute", {"command": "echo > Makefile"})),
        say("", ("write_file", {"path": "a", "content": "b"})),
        say("Done."),
    )
    done = vel(*flags, "--workspace", str(project), "--approve", "write_file", "work")
    assert done.returncode == 3
    assert reported(done.stderr) == ["created Makefile"]
    (run,) = vel.runs()
    (request,) = vel.rows("approvals", "list")
    assert vel("approvals", "approve", request["id"], "--yes").returncode == 0
    resumed = vel("runs", "resume", run["id"])
    assert resumed.returncode == 0, resumed.stderr
    assert reported(resumed.stderr) == ["created Makefile"]


@pytest.mark.slow
def test_the_changes_of_a_subagent_are_in_the_report_of_its_parent(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    hostile = "echo > Makefile; echo evil > .git/hooks/pre-commit; echo evil > .envrc"
    child = vel.script(say("", ("execute", {"command": hostile})), say("Done."), name="child.json")
    given = {
        "model": vel.script(tasks("helper"), say("All done."))[-1],
        "subagents": [{"name": "helper", "model": child[-1]}],
        "sandbox": True,
    }
    create_team(vel, given)
    done = vel("--agent", "team", "--workspace", str(project), "work")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(HEADING) == 1
    assert reported(done.stderr) == ["created Makefile"]
    assert not (project / ".git/hooks/pre-commit").exists()
    assert not (project / ".envrc").exists()


def test_control_characters_in_names_are_shown_as_code_points(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    stderr = run_commands(vel, project, "mkdir $'a\\e[2J\\nx' && echo > $'a\\e[2J\\nx'/Makefile")
    assert "\x1b" not in stderr
    assert HEADING in stderr


@pytest.mark.parametrize(
    "flags", [("--allow-write", ".github/workflows"), ("--protect", "/etc"), ("--protect", "..")]
)
def test_patterns_that_cannot_match_are_refused(
    vel: Vel, place: Path, flags: tuple[str, str]
) -> None:
    project = make_checkout(place)
    done = vel("--provider", "scripted", "--workspace", str(project), *flags, "work")
    assert done.returncode == 2
    assert flags[0] in done.stderr


def test_the_flags_need_a_workspace(vel: Vel) -> None:
    done = vel("--provider", "scripted", "--protect", "a", "work")
    assert done.returncode == 2
    assert "--workspace" in done.stderr


def test_the_users_next_commit_runs_no_code_of_the_run(vel: Vel, place: Path) -> None:
    project = make_checkout(place)
    run_commands(vel, project, HOSTILE, "echo two >> source.txt; git add -A; git commit -qm two")
    assert as_user("git status; echo 3 >> source.txt; git commit -qam three", project).stdout
    assert not os.path.exists("/var/tmp/owned")
    assert as_user("git log --oneline", project).stdout.count("\n") == 3
