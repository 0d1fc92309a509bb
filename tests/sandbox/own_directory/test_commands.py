"""The effect of commands on a user's own directory, with real git and bubblewrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import create_sandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.own_directory.rules import FileRules
from sandbox.workspace import prepare
from tests.sandbox.own_directory.checkouts import (
    as_user,
    contents,
    make_checkout,
    make_directory,
)

pytestmark = pytest.mark.bubblewrap

PLANTS = {
    "a hook": "printf '#!/bin/sh\\ntouch owned\\n' > .git/hooks/pre-commit; "
    "chmod +x .git/hooks/pre-commit",
    "a hook after a rename of .git": "mv .git g; mkdir -p g/hooks; echo 'touch owned' > "
    "g/hooks/pre-commit; chmod +x g/hooks/pre-commit; mv g .git",
    "another .git in the place of the first": "cp -r .git g; echo 'touch owned' > "
    "g/hooks/pre-commit; chmod +x g/hooks/pre-commit; rm -rf .git; mv g .git",
    "core.hooksPath": "mkdir h; echo 'touch owned' > h/pre-commit; chmod +x h/pre-commit; "
    "git config core.hooksPath h",
    "core.fsmonitor": "git config core.fsmonitor 'touch owned; false'",
    "an alias and a filter": "git config alias.st '!touch owned'; "
    "git config filter.x.clean 'touch owned; cat'; echo '* filter=x' > .gitattributes",
    "config renamed over": "echo '[core] fsmonitor = touch owned' > c; mv -f c .git/config",
    "config.worktree": "git config extensions.worktreeConfig true; "
    "echo '[core] fsmonitor = touch owned' > .git/config.worktree",
    "commondir": "cp -r .git evil; echo '[core] fsmonitor = touch owned' >> evil/config; "
    "echo ../evil > .git/commondir",
    "hooks replaced by a link": "mkdir h; echo 'touch owned' > h/pre-commit; chmod +x "
    "h/pre-commit; rm -rf .git/hooks; mv .git/hooks x; ln -s ../h .git/hooks",
    "a hard link to the config": "ln .git/config c && echo '[core] fsmonitor = touch owned' >> c",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_the_users_next_commit_runs_no_file_of_a_command(place: Path, plant: str) -> None:
    project = make_checkout(place)
    result = create_sandbox(str(project)).execute(PLANTS[plant])
    as_user("git status; echo two >> source.txt; git st; git commit -qam two", project)
    assert not (project / "owned").exists(), result


def test_the_hooks_and_the_config_are_the_same_afterwards(place: Path) -> None:
    project = make_checkout(place)
    before = contents(project / ".git")
    box = create_sandbox(str(project))
    for plant in PLANTS.values():
        box.execute(plant)
    after = contents(project / ".git")
    kept = [name for name in before if name.startswith(("hooks", "config"))]
    assert kept
    assert {name: after.get(name) for name in kept} == {name: before[name] for name in kept}


def test_everyday_work_with_git_still_works(place: Path) -> None:
    project = make_checkout(place)
    box = create_sandbox(str(project))
    result = box.execute(
        "set -e; echo two >> source.txt; git add source.txt; git commit -qm two; "
        "git checkout -qb side; git mv source.txt moved.txt; git commit -qam three; "
        "git checkout -q main; git merge -q --no-edit side; git tag v1; echo x > moved.txt; "
        "git stash -q; git stash pop -q; git checkout -q .; git reset -q --hard HEAD~1; "
        "git rebase -q side; git gc -q; git fsck --strict --no-dangling; git status --porcelain; "
        "git log --oneline | wc -l"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "3\n"
    assert as_user("git log --oneline", project).stdout.count("\n") == 3


@pytest.mark.parametrize(
    "name", [".vscode/tasks.json", ".envrc", ".github/workflows/ci.yml", ".mcp.json", ".npmrc"]
)
@pytest.mark.parametrize("below", ["", "packages/deep/"])
def test_existing_files_cannot_be_changed(place: Path, name: str, below: str) -> None:
    path = f"{below}{name}"
    project = make_checkout(place, more=f"mkdir -p $(dirname {path}) && echo user > {path}")
    first = path.split("/")[0]
    result = create_sandbox(str(project)).execute(
        f"echo evil > {path}; rm -rf {path}; mv {first} aside; mkdir -p $(dirname {path}); "
        f"echo evil > {path}; ln -sf source.txt {path}; cat {path}"
    )
    assert result.stdout == "user\n"
    assert (project / path).read_text() == "user\n"
    assert not list(project.rglob("*vel-blocked*"))


@pytest.mark.parametrize("name", [".vscode/tasks.json", ".envrc", ".bashrc", ".husky/pre-commit"])
def test_files_that_are_new_at_the_top_are_put_aside(place: Path, name: str) -> None:
    project = make_checkout(place)
    first = name.split("/")[0]
    result = create_sandbox(str(project)).execute(f"mkdir -p $(dirname {name}); echo evil > {name}")
    assert f"'{first}' was renamed to '{first}.vel-blocked'" in result.stderr
    assert not (project / first).exists()
    assert (project / f"{first}.vel-blocked").exists()


def test_a_new_file_is_put_aside_while_the_command_runs(place: Path) -> None:
    project = make_checkout(place)
    result = create_sandbox(str(project)).execute(
        "echo evil > .envrc; while test -e .envrc; do sleep 0.02; done; echo gone", timeout=60
    )
    assert result.stdout == "gone\n"


def test_a_long_name_and_a_pattern_of_the_user_are_put_aside_once(place: Path) -> None:
    project = make_checkout(place)
    long = f"{'x' * 240}.code-workspace"
    box = create_sandbox(str(project), rules=FileRules(protect=("deploy*",)))
    result = box.execute(f"echo evil > {long}; echo evil > deploy.sh; sleep 1; ls")
    assert result.success, result.stderr
    assert result.stdout.split() == [
        "deploy.sh.vel-blocked",
        "source.txt",
        f"{'x' * 200}.vel-blocked",
    ]


def test_hooks_cannot_be_created(place: Path) -> None:
    project = make_checkout(place, more="rm -r .git/hooks")
    create_sandbox(str(project)).execute(
        "mkdir .git/hooks; echo 'touch owned' > .git/hooks/pre-commit; chmod +x .git/hooks/*"
    )
    as_user("echo two >> source.txt; git commit -qam two", project)
    assert not (project / "owned").exists()
    assert not (project / ".git/hooks").exists()


def test_closing_the_directory_does_not_keep_a_new_file(place: Path) -> None:
    project = make_checkout(place)
    create_sandbox(str(project)).execute("echo evil > .envrc; chmod 0 . .git")
    assert not (project / ".envrc").exists()


def test_a_command_that_does_not_stop_is_killed(place: Path) -> None:
    project = make_checkout(place)
    result = create_sandbox(str(project)).execute(
        "while true; do echo evil > .envrc; sleep 0.01; done", timeout=120
    )
    assert "killed: it creates too many files" in result.stderr
    assert not (project / ".envrc").exists()


def test_nothing_is_left_behind_in_an_empty_directory(place: Path) -> None:
    directory = make_directory(place)
    assert create_sandbox(str(directory)).execute("ls -A; echo x > file").stdout == ""
    assert sorted(contents(directory)) == ["file"]


def test_a_new_repository_can_be_made_in_the_directory(place: Path) -> None:
    directory = make_directory(place)
    result = create_sandbox(str(directory)).execute(
        "set -e; git init -q sub; cd sub; git config user.name a; git config user.email a@b; "
        "touch f; git add f; git commit -qm f; git clone -q . ../clone; git -C ../clone log "
        "--oneline | wc -l"
    )
    assert result.stdout == "1\n", result.stderr


def test_submodules_and_worktrees_are_protected_too(place: Path) -> None:
    make_checkout(place, "library")
    project = make_checkout(
        place,
        more="git -c protocol.file.allow=always submodule --quiet add ../library vendor/library",
    )
    as_user("git worktree add -q tree; git config extensions.worktreeConfig true", project)
    result = create_sandbox(str(project)).execute(
        "for d in .git/modules/vendor/library .git/modules/vendor .git/modules .git/worktrees/tree "
        ".git/worktrees vendor vendor/library tree; do "
        "python3 -c 'import os, sys; os.rename(sys.argv[1], \"aside\")' $d && echo moved $d; done; "
        "echo x > .git/modules/vendor/library/hooks/pre-commit && echo hook; "
        "echo '[alias] a = !b' >> .git/modules/vendor/library/config && echo config; "
        "echo /sandbox > .git/worktrees/tree/commondir && echo commondir; "
        "echo 'gitdir: x' > tree/.git && echo tree; echo 'gitdir: x' > vendor/library/.git && "
        "echo library; cd vendor/library && git -c user.name=a -c user.email=a@b "
        "commit -q --allow-empty -m x && git log --oneline | wc -l"
    )
    assert result.stdout == "2\n", result.stderr


def test_programs_that_the_config_of_git_names_are_protected(place: Path) -> None:
    project = make_checkout(
        place,
        more="mkdir tools tools/hooks && echo 'exit 0' > tools/hooks/pre-commit && "
        "echo cat > tools/clean && echo '[alias]' > tools/included && "
        "git config core.hooksPath tools/hooks && git config filter.x.clean 'sh tools/clean -v' && "
        "git config include.path ../tools/included",
    )
    result = create_sandbox(str(project)).execute(
        "mv tools/hooks x; mv tools y; echo evil > tools/hooks/pre-commit; "
        "echo evil > tools/clean; echo evil > tools/included; echo fine > tools/other; cat tools/*"
    )
    assert "evil" not in result.stdout
    assert "fine" in result.stdout
    hook = project / "tools/hooks/pre-commit"
    assert hook.read_text() == "exit 0\n"


def test_a_link_is_put_back(place: Path) -> None:
    project = make_checkout(place, more="ln -s ../elsewhere .vscode && ln -s source.txt .envrc")
    result = create_sandbox(str(project)).execute(
        "rm .vscode .envrc; mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > source.txt"
    )
    assert (project / ".vscode").readlink() == Path("../elsewhere")
    assert (project / ".envrc").readlink() == Path("source.txt")
    assert (project / "source.txt").read_text() == "one\n"
    assert "was put back" in result.stderr


def test_files_that_the_user_adds_between_two_commands_are_protected_and_stay(place: Path) -> None:
    project = make_checkout(place)
    box = create_sandbox(str(project))
    assert box.execute("true").success
    as_user("echo user > .envrc; mkdir .vscode", project)
    box.execute("echo evil > .envrc; echo evil > .vscode/tasks.json")
    assert (project / ".envrc").read_text() == "user\n"
    assert not list((project / ".vscode").iterdir())


def test_rules_allow_some_files_and_protect_others(place: Path) -> None:
    project = make_checkout(place, more="mkdir .github && echo u > .github/a && echo u > secret.py")
    rules = FileRules(allow_write=(".github", ".git/hooks"), protect=("secret.py", "deploy.sh"))
    result = create_sandbox(str(project), rules=rules).execute(
        "echo new > .github/a; echo x > .git/hooks/pre-commit; echo evil > secret.py; "
        "echo evil > deploy.sh; echo evil > .git/config; cat .github/a secret.py"
    )
    assert result.stdout == "new\nu\n"
    assert (project / ".git/hooks/pre-commit").exists()
    assert "fsmonitor" not in (project / ".git/config").read_text()
    assert not (project / "deploy.sh").exists()
    assert (project / "deploy.sh.vel-blocked").exists()


def test_the_workspace_of_a_thread_is_guarded_as_well(place: Path) -> None:
    project = make_checkout(place)
    workspace = prepare(place / "threads", "thread", own_directory=project)
    result = BubblewrapSandbox(workspace.policy()).execute(
        "echo evil > .git/hooks/pre-commit; mv .git x; echo evil > .envrc; echo fine > file; ls -A"
    )
    assert result.stdout.split() == [".envrc", ".git", "file", "source.txt"]
    assert sorted(path.name for path in project.iterdir()) == [
        ".envrc.vel-blocked",
        ".git",
        "file",
        "source.txt",
    ]


def test_a_separate_workspace_needs_no_protection(place: Path) -> None:
    directory = make_directory(place, "x")
    workspace = prepare(place / "threads", "thread", directory.stat().st_uid)
    box = BubblewrapSandbox(workspace.policy())
    assert box.guard is None
    assert box.execute("git init -q . && echo x > .git/hooks/pre-commit && echo x > .envrc").success


def test_the_paths_for_a_sandbox_without_mounts(place: Path) -> None:
    project = make_checkout(place, more="mkdir -p packages/a && echo > packages/a/.npmrc")
    guard = create_sandbox(str(project), rules=FileRules(allow_write=(".vscode",))).guard
    assert guard is not None
    denied = {str(path.relative_to(project)) for path in guard.denied_paths()}
    assert {".git/hooks", ".git/config", ".git/commondir", ".envrc", "packages/a/.npmrc"} <= denied
    assert denied.isdisjoint({".git", ".vscode", "source.txt", "packages"})


def test_a_bare_repository_at_the_top_is_protected(place: Path) -> None:
    directory = make_directory(place)
    as_user("git init -q --bare .", directory)
    before = contents(directory)
    create_sandbox(str(directory)).execute(
        "echo evil > hooks/post-update; echo evil > config; mv config x; rm -rf hooks"
    )
    assert contents(directory) == before


def test_too_many_protected_directories_are_refused_with_advice(place: Path) -> None:
    project = make_checkout(
        place, more="for i in $(seq 300); do mkdir -p p/$i && echo x > p/$i/.npmrc; done"
    )
    with pytest.raises(Exception, match="--allow-write"):
        create_sandbox(str(project)).execute("true")
    opened = create_sandbox(str(project), rules=FileRules(allow_write=(".npmrc",)))
    assert opened.execute("true").success
