"""Find, hold and remove toolboxes in their directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.toolboxes.contents import verify_toolbox
from sandbox.toolboxes.find import find_toolbox, hold_toolbox, toolbox_names
from sandbox.toolboxes.store import open_store
from sandbox.toolboxes.toolbox import CURRENT, ENVIRONMENT, MANIFEST, ToolboxError
from tests.support.toolboxes import put_toolbox


@pytest.fixture
def base(place: Path) -> Path:
    return place / "toolboxes"


def mark_of(base: Path, name: str = "data") -> str:
    return (find_toolbox(base, name).environment / "mark").read_text()


def test_the_newest_generation_is_found_and_the_old_one_is_removed(base: Path) -> None:
    old = put_toolbox(base)
    put_toolbox(base, mark="second")
    assert mark_of(base) == "second"
    assert not old.exists()
    assert toolbox_names(base) == ["data"]
    assert verify_toolbox(find_toolbox(base, "data")) == []


def test_a_missing_toolbox_is_not_found(base: Path) -> None:
    assert toolbox_names(base) == []
    with pytest.raises(ToolboxError, match="vel toolbox create data"):
        find_toolbox(base, "data")


def test_a_held_toolbox_stays_when_it_is_replaced_and_removed(base: Path) -> None:
    put_toolbox(base)
    held = hold_toolbox(base, "data")
    put_toolbox(base, mark="second")
    mark = held.toolbox.environment / "mark"
    assert mark.read_text() == "first"
    with open_store(base) as store:
        assert not store.remove("data")
    assert mark.read_text() == "first"
    assert toolbox_names(base) == []
    with pytest.raises(ToolboxError):
        hold_toolbox(base, "data")
    held.release()
    with open_store(base):
        pass
    assert not (base / "data").exists()


def test_a_dead_holder_releases_the_toolbox(base: Path) -> None:
    put_toolbox(base)
    held = hold_toolbox(base, "data")
    generation = held.toolbox.directory
    del held
    put_toolbox(base, mark="second")
    assert not generation.exists()


def test_a_lock_that_is_never_released_causes_an_error(base: Path) -> None:
    put_toolbox(base)
    with (find_toolbox(base, "data").directory / MANIFEST).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ToolboxError, match="locked by another process"):
            hold_toolbox(base, "data")


def test_remains_of_an_interrupted_change_are_removed_and_never_used(base: Path) -> None:
    put_toolbox(base)
    for name in (".building-x", ".removed-y"):
        (base / name / ENVIRONMENT).mkdir(parents=True)
    unnamed = base / "data" / ("0" * 16)
    (unnamed / ENVIRONMENT).mkdir(parents=True)
    half = base / "other" / ("1" * 16)
    (half / ENVIRONMENT).mkdir(parents=True)
    assert toolbox_names(base) == ["data"]
    assert mark_of(base) == "first"
    with open_store(base):
        pass
    assert sorted(os.listdir(base)) == [".lock", "data"]
    assert not unnamed.exists()
    assert mark_of(base) == "first"


def test_a_failed_build_leaves_nothing(base: Path) -> None:
    def fail() -> None:
        with open_store(base) as store, store.staging() as staged:
            (staged / ENVIRONMENT).mkdir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(base) == [".lock"]


@pytest.mark.parametrize("what", ["name", CURRENT, "generation", MANIFEST, ENVIRONMENT])
def test_no_link_is_followed(base: Path, place: Path, what: str) -> None:
    environment = put_toolbox(base)
    path = {
        "name": base / "data",
        CURRENT: base / "data" / CURRENT,
        "generation": environment.parent,
        MANIFEST: environment.parent / MANIFEST,
        ENVIRONMENT: environment,
    }[what]
    path.rename(place / "elsewhere")
    path.symlink_to(place / "elsewhere")
    with pytest.raises(ToolboxError, match="not a plain"):
        hold_toolbox(base, "data")


@pytest.mark.parametrize("content", ["../../../etc", "..", "/etc", "", "0" * 15, "x" * 16])
def test_a_name_refers_only_to_a_generation(base: Path, content: str) -> None:
    put_toolbox(base)
    (base / "data" / CURRENT).write_text(content)
    with pytest.raises(ToolboxError, match="names no valid generation"):
        find_toolbox(base, "data")


def test_a_pipe_that_replaces_a_file_does_not_block(base: Path) -> None:
    put_toolbox(base)
    (base / "data" / CURRENT).unlink()
    os.mkfifo(base / "data" / CURRENT, 0o600)
    with pytest.raises(ToolboxError, match="is not a file"):
        find_toolbox(base, "data")


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("depth", range(5))
def test_toolboxes_that_others_could_have_written_are_not_used(
    base: Path, mode: int, depth: int
) -> None:
    environment = put_toolbox(base)
    generation = environment.parent
    path = [base, base / "data", generation, generation / MANIFEST, environment][depth]
    path.chmod(mode)
    with pytest.raises(ToolboxError, match="others can change it"):
        hold_toolbox(base, "data")


@pytest.mark.root
def test_files_of_another_account_are_not_used(base: Path) -> None:
    os.chown(put_toolbox(base), 12345, 12345)
    with pytest.raises(ToolboxError, match="12345"):
        hold_toolbox(base, "data")


@pytest.mark.root
def test_a_directory_that_sandboxes_cannot_enter_is_refused(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    with pytest.raises(SandboxSetupError, match="cannot enter"), open_store(place / "closed/t"):
        pass


def test_removing_a_link_keeps_its_target(base: Path, place: Path) -> None:
    put_toolbox(base)
    (base / "data").rename(place / "mine")
    (base / "data").symlink_to(place / "mine")
    with open_store(base) as store:
        store.remove("data")
    assert not (base / "data").is_symlink()
    assert (place / "mine" / CURRENT).exists()


def test_another_python_is_reported_and_not_used(base: Path) -> None:
    put_toolbox(base, python="3.9.1", abi="cpython-39-x86_64-linux-gnu")
    with pytest.raises(ToolboxError, match=r"3\.9\.1.*--replace"):
        hold_toolbox(base, "data")
    [problem] = verify_toolbox(find_toolbox(base, "data"))
    assert "built for Python 3.9.1" in problem


@pytest.mark.parametrize("change", ["content", "mode", "more", "less", "link", "pipe", "setuid"])
def test_a_changed_file_is_noticed(base: Path, change: str) -> None:
    environment = put_toolbox(base)
    mark = environment / "mark"
    match change:
        case "content":
            mark.write_text("fisrt")
        case "mode":
            mark.chmod(0o755)
        case "more":
            (environment / "more").touch(0o644)
        case "less":
            mark.unlink()
        case "link":
            (environment / "out").symlink_to("/etc")
        case "pipe":
            os.mkfifo(environment / "pipe")
        case "setuid":
            mark.chmod(0o4755)
    [problem] = verify_toolbox(find_toolbox(base, "data"))
    assert "--replace" in problem


def test_an_invalid_manifest_is_reported(base: Path) -> None:
    environment = put_toolbox(base)
    for content in ("", "[]", "{}", '{"requirements": 1}', "\xff"):
        (environment.parent / MANIFEST).write_text(content, encoding="latin-1")
        with pytest.raises(ToolboxError, match="damaged"):
            find_toolbox(base, "data")
