"""The file with the analyses of a large library, for later processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SetupError
from skills_app.library.registry import Skill, SkillRegistry
from skills_app.library.search import document, kept, meaning
from skills_app.library.search.document import SkillDocument
from skills_app.library.search.kept import NAME, Kept
from skills_app.library.search.ranking import FEW, Match, rank

REQUEST = "my feet hurt when I jog"
LIBRARY = [
    SkillDocument("footwear", "Recommends running shoes for sore feet.", body="Ask for the size."),
    *(SkillDocument(f"garden-{n}", f"Plans garden number {n}.") for n in range(FEW)),
]


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    forget(monkeypatch)
    yield
    document.cache.clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process like a new one."""
    document.cache.clear()
    meaning._request.cache_clear()
    monkeypatch.setattr(meaning, "_known", {})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "cache"
    place.mkdir(mode=0o700)
    return place


def search(directory: Path, library: list[SkillDocument] = LIBRARY) -> list[Match]:
    return rank(REQUEST, library, Kept(directory))


def stored(directory: Path, query: str = "SELECT count(*) FROM skill") -> object:
    with closing(sqlite3.connect(directory / NAME)) as file:
        return file.execute(query).fetchone()[0]


def change(directory: Path, statement: str) -> None:
    with closing(sqlite3.connect(directory / NAME)) as file, file:
        file.execute(statement)


def test_a_later_process_analyses_and_reads_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = search(directory)
    assert (first[0].name, stored(directory)) == ("footwear", len(LIBRARY))
    forget(monkeypatch)
    read: list[str] = []
    original = meaning._read

    def noted(texts: Sequence[str], most: int) -> Any:
        read.extend(texts)
        return original(texts, most)

    monkeypatch.setattr(meaning, "_read", noted)
    monkeypatch.delattr(document, "_analyse")
    assert search(directory) == first
    assert read == [REQUEST]


def test_the_ranking_is_the_same_without_a_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(directory)
    forget(monkeypatch)
    with_file = search(directory)
    forget(monkeypatch)
    assert rank(REQUEST, LIBRARY) == with_file


def test_a_changed_skill_is_analysed_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(directory)
    forget(monkeypatch)
    changed = [SkillDocument("footwear", "Bakes bread."), *LIBRARY[1:]]
    assert search(directory, changed)[0].name != "footwear"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE skill SET analysed = '{}'",
        "UPDATE skill SET analysed = 'no JSON'",
        "UPDATE skill SET vector = x'00'",
        "DROP TABLE skill; ",
        None,
    ],
)
def test_a_damaged_file_is_written_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch, statement: str | None
) -> None:
    first = search(directory)
    if statement:
        change(directory, statement)
    else:
        (directory / NAME).write_bytes(b"no database" * 1000)
    forget(monkeypatch)
    assert search(directory) == first
    forget(monkeypatch)
    monkeypatch.delattr(document, "_analyse")
    assert search(directory) == first


def test_a_file_that_cannot_be_used_changes_no_result(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (directory / NAME).mkdir()
    assert search(directory)[0].name == "footwear"
    assert "failed" in caplog.text


def test_a_link_in_place_of_the_file_is_not_followed(directory: Path, tmp_path: Path) -> None:
    (directory / NAME).symlink_to(tmp_path / "other")
    assert search(directory)[0].name == "footwear"
    assert not (tmp_path / "other").exists()


def test_other_accounts_cannot_read_the_file(directory: Path) -> None:
    before = os.umask(0)
    try:
        search(directory)
    finally:
        os.umask(before)
    assert (directory / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_where_others_can_write_is_refused(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    with pytest.raises(SetupError, match=r"cache_dir: other accounts can write in .* mode 0700"):
        SkillRegistry(cache_dir=directory)


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"cache_dir: .* create it with mode 0700"):
        SkillRegistry(cache_dir=tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cache_dir: .*file is not a directory"):
        SkillRegistry(cache_dir=tmp_path / "file")
    with pytest.raises(SetupError, match="cache_dir: '' is not the path"):
        SkillRegistry(cache_dir="")


def test_analyses_of_another_version_are_removed(directory: Path) -> None:
    search(directory)
    change(directory, "UPDATE skill SET analysis = 'old'")
    search(directory, [SkillDocument(f"bread-{n}", "Bakes bread.") for n in range(FEW + 1)])
    assert stored(directory, "SELECT count(*) FROM skill WHERE analysis = 'old'") == 0


def test_the_file_has_a_limit(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 10)
    search(directory)
    assert stored(directory) == 10


def test_a_library_that_a_process_cannot_keep_is_analysed_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "cache", document._Cache(5))
    monkeypatch.setattr(kept, "cache", document.cache)
    analysed: list[str] = []
    original = document._analyse

    def noted(one: SkillDocument) -> document.Analysed:
        analysed.append(one.name)
        return original(one)

    monkeypatch.setattr(document, "_analyse", noted)
    first = search(directory)
    assert len(analysed) == len(LIBRARY)
    assert search(directory) == first


def test_a_registry_uses_its_directory_for_many_skills_only(directory: Path) -> None:
    registry = SkillRegistry(cache_dir=directory)
    registry.find_skill(REQUEST)
    assert not (directory / NAME).exists()
    for found in LIBRARY:
        registry.register(Skill(found.name, found.description, "Do it."))
    skill = registry.find_skill(REQUEST)
    assert skill is not None
    assert skill.name == "footwear"
    assert (directory / NAME).exists()


def test_sqlite_is_not_imported_without_a_directory() -> None:
    program = (
        "from skills_app.library.registry import SkillRegistry;"
        "assert SkillRegistry().find_skill('fill in this form').name == 'pdf-processing';"
        "import sys; assert 'skills_app.library.search.kept' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], timeout=600, check=True)
