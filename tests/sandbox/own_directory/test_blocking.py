"""The watch that renames new protected files."""

from __future__ import annotations

from pathlib import Path

from sandbox.own_directory.blocking import NewFileWatch
from sandbox.own_directory.rules import FileRules


def test_files_behind_a_link_out_of_the_directory_are_not_put_aside(
    tmp_path: Path,
) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for top in (root / "sub", other):
        (top / ".git").mkdir(parents=True)
    watch = NewFileWatch(root, FileRules(), ["sub/.git"])
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(other)
    hook = other / ".git/hooks/pre-commit"
    hook.parent.mkdir()
    hook.write_text("of another repository")
    watch.check()
    assert watch.last_word() is None
    assert hook.read_text() == "of another repository"
