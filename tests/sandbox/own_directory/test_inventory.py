"""The report: new and changed files that programs outside the sandbox run later."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sandbox.own_directory import scan
from sandbox.own_directory.inventory import Change, Inventory, changes_since
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.scan import take_inventory
from tests.sandbox.own_directory.checkouts import as_user, make_checkout


def changes(project: Path, command: str, rules: FileRules | None = None) -> list[Change]:
    """Return the report after a command without any protection."""
    before = take_inventory(project, rules or FileRules())
    before = Inventory.from_json(json.loads(json.dumps(before.to_json())))
    done = as_user(command, project)
    assert done.returncode == 0, done.stderr
    return changes_since(before, take_inventory(project, rules or FileRules()))


def paths(project: Path, command: str) -> list[str]:
    return [change.path for change in changes(project, command)]


def test_source_files_are_not_reported(place: Path) -> None:
    project = make_checkout(place)
    assert paths(project, "echo two >> source.txt; mkdir a; echo > a/b.py; git commit -qam x") == []


@pytest.mark.parametrize(
    "name",
    ["Makefile", "a/package.json", "conftest.py", "CLAUDE.md", "x/y/vite.config.ts", "a.pth"],
)
def test_files_that_may_be_edited_are_listed(place: Path, name: str) -> None:
    project = make_checkout(place)
    assert paths(project, f"mkdir -p $(dirname {name}) && echo x > {name}") == [name]
    assert paths(project, f"echo y > {name}") == [name]
    assert paths(project, f"touch {name}") == []
    assert paths(project, f"rm {name}") == []


def test_a_change_names_the_action_and_its_effect(place: Path) -> None:
    project = make_checkout(place, more="echo 'all:' > Makefile")
    (made,) = changes(project, "echo '{}' > package.json")
    assert made == Change("package.json", "created", "a build or test definition")
    (changed,) = changes(project, "echo 'all: evil' > Makefile")
    assert changed.what == "changed"


def test_a_new_repository_counts_only_if_it_runs_code(place: Path) -> None:
    project = make_checkout(place)
    assert paths(project, "git init -q sub && git clone -q . clone") == []
    assert paths(project, "git worktree add -q tree") == ["tree/.git"]
    assert paths(project, "echo x > sub/.git/hooks/pre-push") == ["sub/.git/hooks/pre-push"]
    (config,) = changes(project, "git -C sub config core.fsmonitor evil")
    assert config.path == "sub/.git/config"
    assert "core.fsmonitor" in config.why
    assert paths(project, "git -C sub config user.name me") == []


@pytest.mark.parametrize(
    "setting",
    [
        "core.hooksPath h",
        "core.sshCommand x",
        "core.editor x",
        "core.pager x",
        "alias.x '!x'",
        "filter.x.clean x",
        "diff.external x",
        "gpg.program x",
        "include.path x",
        "credential.helper x",
        "merge.x.driver x",
        "protocol.ext.allow always",
        "sequence.editor x",
    ],
)
def test_settings_that_run_programs_are_found(place: Path, setting: str) -> None:
    project = make_checkout(place)
    assert paths(project, f"git config {setting}") == [".git/config"]


def test_settings_in_unusual_spelling_are_found(place: Path) -> None:
    project = make_checkout(place)
    text = '[ALIAS]a=!x\\n[ core ]\\n\\tfsmonitor \\\\\\n = x\\n[core] SSHCommand="a b" ; c'
    (change,) = changes(project, f"printf '{text}' >> .git/config")
    assert "alias.a" in change.why
    assert "core.sshcommand" in change.why


def test_a_repository_at_the_top_and_an_embedded_one_are_reported(place: Path) -> None:
    project = make_checkout(place)
    as_user("rm -rf .git", project)
    assert paths(project, "git init -q .") == [".git"]
    assert paths(project, "mkdir -p docs/objects docs/refs; echo > docs/HEAD") == ["docs"]
    assert paths(project, "echo '[core] fsmonitor = x' > docs/config") == ["docs/config"]
    assert paths(project, "mkdir g && echo 'gitdir: ../docs' > g/.git") == ["g/.git"]


def test_files_that_redirect_git_are_reported(place: Path) -> None:
    project = make_checkout(place)
    assert paths(project, "echo ../x > .git/commondir") == [".git/commondir"]
    todo = ".git/rebase-merge/git-rebase-todo"
    assert paths(project, f"mkdir .git/rebase-merge; echo 'pick 1' > {todo}") == []
    assert paths(project, f"echo 'exec evil' >> {todo}") == [todo]


def test_installed_packages_and_compiled_files_are_compared_as_a_whole(place: Path) -> None:
    project = make_checkout(place)
    made = "mkdir -p node_modules/a __pycache__ env && echo > node_modules/a/index.js && "
    assert paths(project, made + "echo > __pycache__/x.pyc && touch env/pyvenv.cfg") == [
        "__pycache__",
        "env",
        "node_modules",
    ]
    assert paths(project, "true") == []
    assert paths(project, "echo y > node_modules/a/index.js") == ["node_modules"]


def test_allowed_files_are_still_listed(place: Path) -> None:
    project = make_checkout(place, more="mkdir .github && echo > .github/a")
    found = changes(project, "echo x > .github/b; echo > .envrc", FileRules((".github", ".envrc")))
    assert [change.path for change in found] == [".envrc", ".github"]


def test_links_and_special_files_do_no_harm(place: Path) -> None:
    project = make_checkout(place)
    found = paths(
        project,
        "ln -s / root; ln -s loop loop; mkfifo Makefile .envrc; ln -s /etc/passwd package.json; "
        "mkdir sub; ln -s ../.git sub/.git; ln -s .. up",
    )
    assert found == [".envrc", "Makefile", "package.json", "sub/.git"]


def test_paths_beyond_a_limit_or_a_permission_are_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_checkout(place, more="mkdir -p a/b && touch a/b/$(seq -s ' a/b/' 60)")
    monkeypatch.setattr(scan, "ENTRIES", 50)
    found = take_inventory(project, FileRules())
    assert any(place.startswith("a/b: ") for place in found.incomplete)
    monkeypatch.setattr(scan, "ENTRIES", 10_000)
    as_user("mkdir -p $(printf 'd/%.0s' $(seq 70))", project)
    found = take_inventory(project, FileRules())
    assert any("nested deeper" in place for place in found.incomplete)


def test_a_closed_directory_is_named(place: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("needs an ordinary account")
    project = make_checkout(place, more="mkdir closed && chmod 0 closed")
    found = take_inventory(project, FileRules())
    assert found.incomplete == ["closed: Permission denied"]


@pytest.mark.parametrize("pattern", ["", "/etc", "..", "a/../b", "~/x", ".github/workflows", "\n"])
def test_patterns_that_cannot_match_are_refused(pattern: str) -> None:
    with pytest.raises(Exception, match=r"not a path|protected as a whole|control character"):
        FileRules(allow_write=(pattern,))
