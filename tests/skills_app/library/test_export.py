"""Exports are strict: Vel and the reference read back the same content."""

from __future__ import annotations

import os
import stat
import time
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills_app.library.export import export_files, head_text, write_archive, write_folder
from skills_app.library.frontmatter import read_skill
from skills_app.library.head import STANDARD, read_head
from skills_app.library.normalise import normalise_name, read_name
from skills_app.library.package import Head, PackageFile
from skills_app.library.problems import InvalidSkill
from skills_app.library.read import read_package, read_text
from skills_app.library.sources.archive import read_archive
from skills_app.library.sources.folder import read_folder
from skills_app.library.strict import strict_problems
from skills_app.library.validator import validate
from tests.support.packages import BODY, package_files, skill_text


def is_printable(text: str) -> bool:
    return all(c in "\t\n\r\x85" or ord(c) > 0x9F or " " <= c <= "~" for c in text)


HARD = st.sampled_from(
    ["---", "\n---\n", ": ", " #", "<<", "~", "true", "1.0", '"', "'", "\\", "\\x2D", "{", "["]
) | st.sampled_from(
    ["- ", "%", "@", "\t", "\n\n", "\r", "\u2028", "\x85", "\ufeff", "\ufffe", "\u00a0", "*", "&a"]
)
CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(is_printable)
TEXT = st.lists(HARD | st.text(CHARACTERS, max_size=8), max_size=6).map("".join)
STRIPPED = TEXT.map(str.strip)
FULL = STRIPPED.filter(bool)
PHRASES = st.lists(FULL, max_size=3, unique=True).map(tuple)
NAMES = st.text(max_size=12).map(normalise_name).filter(lambda name: bool(read_name(name, None)[0]))
TOOLS = st.sampled_from(["Read", "Bash(git:*)", "Bash(git add:*, x)", "mcp__a__b", "技"])
OTHERS = st.dictionaries(
    TEXT.filter(lambda key: key not in ("version", "author")), TEXT, max_size=3
)
HEADS = st.builds(
    Head,
    name=NAMES,
    description=FULL,
    license=STRIPPED,
    compatibility=STRIPPED,
    metadata=OTHERS,
    allowed_tools=st.none() | st.lists(TOOLS, max_size=3, unique=True).map(tuple),
    title=STRIPPED,
    version=STRIPPED,
    author=STRIPPED,
    tags=PHRASES,
    triggers=PHRASES,
    requires=st.lists(NAMES, max_size=3, unique=True).map(tuple),
    tools_required=PHRASES,
    priority=st.integers(-999_999, 999_999),
    extra=st.dictionaries(TEXT, TEXT, max_size=3),
)


def by_the_reference(text: str) -> str:
    """Return the frontmatter as the reference reader does: it splits at any `---`."""
    return text.split("---", 2)[1]


@given(HEADS)
@settings(max_examples=25)
def test_an_exported_head_is_read_back_unchanged(head: Head) -> None:
    text = head_text(head) + BODY
    fields, body = read_skill(text)
    assert read_head(fields) == (head, [])
    assert body == BODY
    assert set(fields) <= set(STANDARD)
    assert strict_problems(text) == []
    assert f"---{by_the_reference(text)}---\n{BODY}" == text


def test_a_plain_head_stays_readable() -> None:
    head = Head(
        "report", "Writes reports.", version="1.0", tags=("a b",), priority=2, license="MIT"
    )
    assert head_text(head) == (
        "---\n"
        "name: report\n"
        "description: Writes reports.\n"
        "license: MIT\n"
        "metadata:\n"
        '  version: "1.0"\n'
        '  vel-tags: "[\\"a b\\"]"\n'
        '  vel-priority: "2"\n'
        "---\n"
    )


def test_tools_that_are_needed_are_never_allowed_by_an_export() -> None:
    text = head_text(Head("report", "Writes.", tools_required=("Bash",)))
    assert "allowed-tools" not in text
    assert 'vel-tools-required: "[\\"Bash\\"]"' in text


def test_a_strict_package_is_exported_unchanged() -> None:
    package = read_text(skill_text("report", "Writes.", "# a comment", "license: MIT"))
    assert export_files(package, package.head) == list(package.files)
    changed = export_files(package, replace(package.head, license="Apache-2.0"))
    assert b"Apache" in changed[0].data
    assert b"comment" not in changed[0].data


@pytest.mark.parametrize(
    "lines",
    [
        ("version: 1.0", "tags: [a, b]", "homepage: https://x.example/#a"),
        ("enabled: true",),
        ("allowed-tools: [Read, 'Bash(git add:*)']", "requires: {mcp: [rube]}"),
        ("license: x --- y",),
    ],
)
def test_a_lenient_package_is_mended_and_its_body_stays(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    body = "\r\n one\n---\ntwo\r\n\ufeff"
    files = package_files(
        "\ufeff" + skill_text("Weekly Report", "'Writes: all.'", *lines, body=body),
        {"run.sh": b"\0\xff"},
    )
    package, problems = read_package(files, "else")
    assert package is not None
    assert problems
    out = export_files(package, package.head)
    write_folder(tmp_path / "weekly-report", out)
    assert validate(tmp_path / "weekly-report") == []
    again = read_folder(tmp_path / "weekly-report")
    assert again.head == package.head
    assert again.body == package.body == body
    assert again.files[1:] == package.files[1:]
    assert export_files(again, again.head) == list(again.files)


def test_enabled_is_the_agents_choice_and_stays_here() -> None:
    package = read_text(skill_text("report", "Writes.", "enabled: false"))
    (file,) = export_files(package, package.head)
    assert b"enabled" not in file.data
    assert read_text(file.data.decode()).head == replace(package.head, enabled=True)


def test_an_export_with_a_long_head_is_refused() -> None:
    with pytest.raises(InvalidSkill, match="longer than 16,384 bytes"):
        head_text(Head("report", "x", extra={"a": "y" * 17_000}))
    with pytest.raises(InvalidSkill, match=r"no SKILL\.md"):
        export_files([PackageFile("a", b"")], Head("report", "x"))


def test_a_long_plain_text_takes_no_time() -> None:
    begun = time.process_time()
    head_text(Head("report", "word" * 250 + "!", license="a-" * 2000 + "!"))
    assert time.process_time() - begun < 2  # it took minutes in an earlier version


def test_a_folder_has_the_bytes_and_modes(tmp_path: Path) -> None:
    files = [*package_files(), PackageFile("scripts/run.sh", b"#!/bin/sh\n", executable=True)]
    (tmp_path / "report").mkdir()
    write_folder(tmp_path / "report", files)
    assert list(read_folder(tmp_path / "report").files) == files
    assert stat.S_IMODE((tmp_path / "report/scripts/run.sh").stat().st_mode) & 0o111
    assert os.listdir(tmp_path) == ["report"]


def test_a_folder_is_never_written_over_or_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "dangling").symlink_to("new")
    before = sorted(map(str, tmp_path.rglob("*")))
    for name, words in (
        ("full", "already exists"),
        ("full/file", "already exists"),
        ("link", "is a link"),
        ("dangling", "is a link"),
        ("none/report", "create it first"),
    ):
        with pytest.raises(InvalidSkill, match=words):
            write_folder(tmp_path / name, package_files())
    assert sorted(map(str, tmp_path.rglob("*"))) == before


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "SKILL.MD", "x\0", "SKILL.md/x"])
def test_nothing_is_written_when_a_path_is_wrong(tmp_path: Path, path: str) -> None:
    files = [*package_files(), PackageFile(path, b"x")]
    with pytest.raises(InvalidSkill):
        write_folder(tmp_path / "report", files)
    with pytest.raises(InvalidSkill):
        write_archive("report", files)
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(self: Path, target: Path) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "report", package_files())
    assert os.listdir(tmp_path) == []


def test_an_archive_is_reproducible_and_can_be_imported() -> None:
    files = [*package_files(), PackageFile("技/run.sh", b"x" * 1000, executable=True)]
    data = write_archive("report", files)
    assert data == write_archive("report", files[::-1])
    assert read_archive(data, "report.skill").files == tuple(files)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.namelist() == ["report/SKILL.md", "report/技/run.sh"]
        assert archive.testzip() is None
