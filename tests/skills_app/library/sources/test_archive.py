"""Packages from archives, and all kinds of misleading archives."""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import subprocess
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills_app.library.problems import InvalidSkill
from skills_app.library.sources.archive import archive_package, read_archive
from skills_app.library.sources.folder import read_folder
from skills_app.settings import SkillSettings
from tests.support.packages import make_folder, make_zip, skill_text

SKILL = {"report/SKILL.md": skill_text()}
AT_ROOT = {"SKILL.md": skill_text()}


def message(data: bytes, filename: str = "report.zip") -> str:
    """Return the reason for refusing `data`, which must take less than a second."""
    begun = time.process_time()
    with pytest.raises(InvalidSkill) as refusal:
        read_archive(data, filename)
    assert time.process_time() - begun < 1
    assert refusal.value.problems
    str(refusal.value).encode()
    return str(refusal.value)


def patched(data: bytes, mark: bytes, offset: int, value: bytes, which: int = 0) -> bytes:
    """Return `data` with `value` at `offset` of header number `which` that starts with `mark`."""
    at = -1
    for _ in range(which + 1):
        at = data.index(mark, at + 1)
    at += offset
    return data[:at] + value + data[at + len(value) :]


CENTRAL, LOCAL, END = b"PK\1\2", b"PK\3\4", b"PK\5\6"


@pytest.mark.parametrize("prefix", ["", "report/", "other/"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_is_a_package(prefix: str, method: int) -> None:
    files = {f"{prefix}SKILL.md": skill_text(), f"{prefix}scripts/run.sh": "#!/bin/sh\n"}
    modes = {f"{prefix}scripts/run.sh": stat.S_IFREG | 0o755}
    package = read_archive(make_zip(files, modes=modes, method=method), "report.skill")
    assert package.head.name == "report"
    assert [(file.path, file.executable) for file in package.files] == [
        ("SKILL.md", False),
        ("scripts/run.sh", True),
    ]
    told = [problem.code for problem in package.problems]
    assert told == (["directory"] if prefix == "other/" else [])


def test_a_skill_file_alone() -> None:
    assert read_archive(skill_text().encode(), "SKILL.md").head.name == "report"
    assert "Missing required field" in message(b"---\ndescription: x\n---\nx", "SKILL.md")
    assert "not UTF-8" in message(make_zip(), "SKILL.md")
    assert "not a zip archive" in message(skill_text().encode(), "report.zip")


def test_archives_of_other_programs_are_read(tmp_path: Path) -> None:
    """`zip` and its streams, Python's streams, and entries for directories."""
    place = make_folder(tmp_path / "report", {"a/b.txt": "x" * 5000, "技能.md": "x"})
    (place / "a/run.sh").write_text("#!/bin/sh\n")
    (place / "a/run.sh").chmod(0o755)
    expected = read_folder(place).content_hash
    stream = io.BytesIO()
    stream.seekable = lambda: False  # type: ignore[method-assign]
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(place.rglob("*")):
            archive.write(path, path.relative_to(tmp_path))
    archives = [stream.getvalue()]
    if shutil.which("zip"):
        for arguments in (["-r", "-"], ["-r", "-X", "-"], ["-r", "-fz-", "-"]):
            done = subprocess.run(
                ["zip", "-q", *arguments, "report"], cwd=tmp_path, capture_output=True, check=True
            )
            archives.append(done.stdout)
    for data in archives:
        assert read_archive(data, "report.zip").content_hash == expected


def test_files_left_by_tools_are_omitted() -> None:
    files = {**SKILL, "__MACOSX/report/._SKILL.md": b"\0", "report/.DS_Store": b"\0"}
    package = read_archive(make_zip(files), "report.zip")
    assert [file.path for file in package.files] == ["SKILL.md"]
    assert [problem.code for problem in package.problems] == ["left_out"]


def test_an_archive_inside_is_just_a_file() -> None:
    inner = make_zip({"../../x": "evil", **AT_ROOT})
    package = read_archive(make_zip({**SKILL, "report/inner.zip": inner}), "x.zip")
    assert package.files[1].data == inner
    stored = make_zip({**SKILL, "report/z.zip": inner}, method=zipfile.ZIP_STORED)
    assert read_archive(stored, "x.zip").files[1].data == inner


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README.md": "x"}, "Missing required file: SKILL.md"),
        ({"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b")}, "several skills"),
        ({"a/b/SKILL.md": skill_text("b")}, "pack it at the root"),
        ({"SKILL.md": skill_text(), "a.md": "", "A.md": ""}, "case or spelling"),
        ({"SKILL.md": skill_text(), "a": "", "a/b": ""}, "a file and a directory"),
        ({**SKILL, "report/../x": ""}, "lead out"),
        ({**SKILL, "../x": ""}, "lead out"),
        ({**SKILL, "/etc/cron.d/x": ""}, "absolute"),
        ({**SKILL, "C:/x": ""}, "some systems refuse"),
        ({**SKILL, "report\\..\\x": ""}, "some systems refuse"),
        ({**SKILL, "report/./x": ""}, "`.`"),
        ({**SKILL, "report//x": ""}, "empty name"),
        ({**SKILL, "report/NUL": ""}, "device"),
        ({**SKILL, "report/a\u202egnp.exe": ""}, "invisible"),
        ({**SKILL, "report/a.": ""}, "ends with a dot"),
        ({**SKILL, "__MACOSX/../../x": ""}, "lead out"),
        ({**SKILL, "report/../../d/": ""}, "lead out"),
    ],
)
def test_names_that_are_refused(files: dict[str, str], words: str) -> None:
    assert words in message(make_zip(files))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (stat.S_IFLNK | 0o777, "a link"),
        (stat.S_IFIFO | 0o644, "neither a plain file"),
        (stat.S_IFCHR | 0o644, "neither a plain file"),
        (stat.S_IFDIR | 0o755, "neither a plain file"),
    ],
)
def test_only_plain_files_are_taken(mode: int, words: str) -> None:
    data = make_zip({**SKILL, "report/x": "/etc/passwd"}, modes={"report/x": mode})
    assert words in message(data)
    # This applies to entries of any system.
    assert words in message(patched(data, CENTRAL, 5, b"\0", which=1))


def test_a_duplicate_is_refused() -> None:
    data = make_zip({**SKILL, "report/SKILL.mX": skill_text("other")})
    assert "more than once" in message(data.replace(b"SKILL.mX", b"SKILL.md"))


def test_a_nul_in_a_name_is_refused() -> None:
    data = make_zip({**SKILL, "report/aXb": "x"})
    assert "invisible" in message(data.replace(b"report/aXb", b"report/a\0b"))
    data = make_zip({"SKILL.mdXx": skill_text()})
    assert "invisible" in message(data.replace(b"SKILL.mdXx", b"SKILL.md\0x"))


def test_a_name_that_is_not_utf8_is_refused() -> None:
    data = make_zip({**SKILL, "report/aXb": "x"})
    assert "not UTF-8" in message(data.replace(b"report/aXb", b"report/a\xffb"))


def test_a_second_name_is_refused() -> None:
    """Info-ZIP's Unicode path, which some readers use instead of the name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("SKILL.md", skill_text())
        entry = zipfile.ZipInfo("harmless.md")
        name = b"../evil.md"
        content = struct.pack("<BL", 1, zlib.crc32(b"harmless.md")) + name
        entry.extra = struct.pack("<HH", 0x7075, len(content)) + content
        archive.writestr(entry, "x")
    assert "second name" in message(packed.getvalue())


@pytest.mark.parametrize(
    ("mark", "offset", "value", "words"),
    [
        (CENTRAL, 10, struct.pack("<H", 99), "unusual way"),
        (CENTRAL, 10, struct.pack("<H", 12), "unusual way"),
        (LOCAL, 8, struct.pack("<H", 0), "contradicts the directory"),
        (CENTRAL, 8, struct.pack("<H", 1), "encrypted"),
        (LOCAL, 6, struct.pack("<H", 1), "encrypted"),
        (CENTRAL, 16, b"\0\0\0\0", "contradicts the directory"),
        (LOCAL, 14, b"\0\0\0\0", "contradicts the directory"),
        (LOCAL, 22, struct.pack("<L", 5), "contradicts the directory"),
        (LOCAL, 30, b"x", "contradicts the directory"),
        (CENTRAL, 46, b"x", "contradicts the directory"),
        (CENTRAL, 24, struct.pack("<L", 0xFFFFFFFF), "zip64"),
        (CENTRAL, 42, struct.pack("<L", 0xFFFFFFFF), "zip64"),
        (CENTRAL, 42, struct.pack("<L", 3), "not where the directory says"),
        (CENTRAL, 42, struct.pack("<L", 10**9), "not where the directory says"),
        (CENTRAL, 20, struct.pack("<L", 10**9), "cut off"),
        (CENTRAL, 28, struct.pack("<H", 60_000), "cannot be read"),
        (CENTRAL, 34, struct.pack("<H", 1), "cannot be read"),
        (CENTRAL, 0, b"XX", "cannot be read"),
        (LOCAL, 28, struct.pack("<H", 60_000), "cut off"),
        (END, 10, struct.pack("<H", 2), "one part of several"),
        (END, 8, struct.pack("<HH", 2, 2), "cut off"),
        (END, 8, struct.pack("<HH", 0, 0), "does not end"),
        (END, 8, struct.pack("<HH", 5000, 5000), "more than 2,000 entries"),
        (END, 8, struct.pack("<HH", 0xFFFF, 0xFFFF), "zip64"),
        (END, 12, struct.pack("<L", 0xFFFFFFFF), "zip64"),
        (END, 12, struct.pack("<L", 1), "not where its end says"),
        (END, 16, struct.pack("<L", 1), "not where its end says"),
        (END, 20, struct.pack("<H", 7), "end is missing"),
        (END, 4, struct.pack("<H", 1), "one part of several"),
    ],
)
def test_false_headers_are_refused(mark: bytes, offset: int, value: bytes, words: str) -> None:
    data = make_zip(SKILL)
    if mark == LOCAL and offset == 0:
        data = data[1:]
    assert words in message(patched(data, mark, offset, value))


def test_false_sizes_in_both_headers_are_refused() -> None:
    size = len(skill_text())
    data = make_zip(SKILL)
    for lie in (size - 1, size + 1, 0):
        lying = patched(data, CENTRAL, 24, struct.pack("<L", lie))
        lying = patched(lying, LOCAL, 22, struct.pack("<L", lie))
        assert "another size than stated" in message(lying)


def test_damage_is_reported() -> None:
    data = make_zip({**SKILL, "report/data.txt": os.urandom(500)})
    assert "end is missing" in message(data[:-1])
    assert "end is missing" in message(data[: len(data) // 2])
    assert "end is missing" in message(data + b"x")
    assert "not a zip archive" in message(b"MZ" + data)
    assert "not a zip archive" in message(b"")
    at = data.index(b"report/data.txt") + 100
    flipped = data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]
    assert "is damaged" in message(flipped)


def test_bytes_that_belong_to_no_entry_are_refused() -> None:
    data = make_zip(SKILL)
    begin = data.index(CENTRAL)
    hidden = data[:begin] + b"hidden" + data[begin:]
    hidden = patched(hidden, END, 16, struct.pack("<L", begin + 6))
    assert "belong to no entry" in message(hidden)


def test_two_ends_are_refused() -> None:
    data = make_zip(SKILL)
    end = data[data.index(END) :]
    commented = patched(data, END, 20, struct.pack("<H", len(end))) + end
    assert "two ends" in message(commented)
    plain = patched(data, END, 20, struct.pack("<H", 4)) + b"hash"
    assert read_archive(plain, "x.zip").head.name == "report"


def test_overlapping_entries_are_refused() -> None:
    """Many entries unpack the same bytes: a bomb that the ratio of a single entry does not show."""
    data = make_zip({**SKILL, "report/a.txt": "x" * 1000, "report/b.txt": "x" * 1000})
    first = data.index(b"report/a.txt") - 30
    same = patched(data, CENTRAL, 42, struct.pack("<L", first), which=2)
    assert "overlaps" in message(same)


def test_a_bomb_is_refused_at_the_unpacking_limit() -> None:
    limits = SkillSettings.now()
    zeros = b"\0" * (limits.FILE_BYTES - 1)
    assert "as a bomb" in message(make_zip({**SKILL, "report/zeros": zeros}))
    assert "exceeds the limit of 10,000,000" in message(
        make_zip({**SKILL, "report/zeros": zeros + b"\0\0"})
    )
    noise = os.urandom(150_000)
    files = {f"report/{n}": noise + zeros[:9_000_000] for n in range(3)}
    assert "exceeds the limit of 20,000,000" in message(make_zip({**SKILL, **files}))


@pytest.mark.slow
def test_a_bomb_that_announces_little_is_refused() -> None:
    data = make_zip({**SKILL, "report/zeros": b"\0" * 50_000_000})
    lying = patched(data, CENTRAL, 24, struct.pack("<L", 10), which=1)
    lying = patched(lying, LOCAL, 22, struct.pack("<L", 10), which=1)
    tracemalloc.start()
    assert "exceeds the limit" in message(lying)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000


def test_too_many_entries_and_too_large_an_archive() -> None:
    limits = SkillSettings.now()
    many = {f"report/{n}": "" for n in range(limits.FILES)}
    assert "more than 1,000 files" in message(make_zip({**SKILL, **many}))
    more = {f"report/{n}": "" for n in range(2 * limits.FILES)}
    assert "more than 2,000 entries" in message(make_zip({**SKILL, **more}))
    large = b"PK\3\4" + b"\0" * limits.ARCHIVE_BYTES
    assert "exceeds the limit of 20,000,000" in message(large)


def test_all_wrong_names_are_reported_together() -> None:
    _, problems = archive_package(make_zip({**SKILL, "../a": "", "/b": "", "c\\d": ""}), "x.zip")
    assert [problem.path for problem in problems] == ["../a", "/b", "c\\d"]


GOOD = make_zip({**SKILL, "report/a.txt": "x" * 300, "report/技.md": "y"})


@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4
    ),
    cut=st.integers(0, 30) | st.just(0),
)
@settings(max_examples=300)
def test_any_change_gives_a_package_or_problems(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(GOOD)
    for at, value in changes:
        data[at] = value
    package, problems = archive_package(bytes(data[: len(data) - cut]), "x.zip")
    assert package is not None or problems


@given(st.binary(max_size=300), st.sampled_from([b"", b"PK\3\4", b"PK\5\6"]))
@settings(max_examples=200)
def test_any_bytes_give_problems(data: bytes, begin: bytes) -> None:
    package, problems = archive_package(begin + data, "x.zip")
    assert package is None
    assert problems
