"""The paths that complete a word after `@`."""

from __future__ import annotations

from pathlib import Path

import pytest

from velproject.cli.commands.runs.session import completion
from velproject.cli.commands.runs.session.completion import found_paths


def make(place: Path, *paths: str) -> Path:
    for path in paths:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).touch()
    return place


def test_letters_of_a_name_find_it_in_all_directories_and_good_matches_come_first(
    tmp_path: Path,
) -> None:
    make(tmp_path, "src/web/view_tests.py", "v/t.py", "src/vt.txt", "docs/a.md")
    assert found_paths(tmp_path, "VT") == ["src/vt.txt", "src/web/view_tests.py", "v/t.py"]
    assert found_paths(tmp_path, "web") == ["src/web/", "src/web/view_tests.py"]
    assert found_paths(tmp_path, "zzz") == []
    assert found_paths(tmp_path, "")[:2] == ["v/", "src/"]


def test_only_visible_names_below_the_directory_are_offered(tmp_path: Path) -> None:
    place = make(tmp_path / "place", "a.txt", "a\x1b[31m", "a\u202eb", "a b", "a c/a.py")
    (tmp_path / "a_outside").touch()
    (place / "a_up").symlink_to(tmp_path)
    assert found_paths(place, "a") == ["a_up", "a.txt"]
    assert found_paths(place, "outside") == []
    assert found_paths(place / "missing", "a") == []


@pytest.mark.parametrize("folder", [".git", "node_modules", ".venv", "__pycache__"])
def test_directories_of_tools_are_not_searched(tmp_path: Path, folder: str) -> None:
    make(tmp_path, f"{folder}/found.py", f"deep/{folder}/found.py", "deep/found.py")
    assert found_paths(tmp_path, "found") == ["deep/found.py"]


def test_a_large_tree_is_searched_to_a_limit_from_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, *(f"a/{number}/deep.py" for number in range(50)), "z/near.py")
    monkeypatch.setattr(completion, "MOST_ENTRIES", 60)
    assert found_paths(tmp_path, "near.py") == ["z/near.py"]
    assert len(found_paths(tmp_path, "deep.py")) < 10
    monkeypatch.setattr(completion, "MOST_OFFERED", 5)
    assert len(found_paths(tmp_path, "")) == 5


def test_names_that_an_agent_has_chosen_cannot_stop_the_completion(tmp_path: Path) -> None:
    """The letters of the word match in very many ways, but the last one is missing."""
    make(tmp_path, "".join(letter * 60 for letter in "abcd"))
    assert found_paths(tmp_path, "aaaabbbbccccddddx") == []
