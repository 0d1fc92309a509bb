"""Read a package from a zip or `.skill` archive, or from a SKILL.md alone. Writes no files."""

from __future__ import annotations

import stat
import zlib
from pathlib import PurePosixPath

from skills_app.library.package import SKILL_FILE, Package, PackageFile
from skills_app.library.paths import is_junk, junk_problems, shown_path, unsafe_path
from skills_app.library.problems import InvalidSkill, Problem, error
from skills_app.library.read import (
    file_limit,
    file_too_large,
    is_skill_file,
    package_too_large,
    read_package,
    refused,
    too_many_files,
)
from skills_app.library.sources.zip_directory import DEFLATED, ZipEntry, read_entries
from skills_app.settings import SkillSettings

MAX_RATIO = 100
"""The maximum number of unpacked bytes for each byte of the archive. Text has 3 to 10."""
_UNSUSPICIOUS = 1_000_000
"""The number of bytes that may have any ratio: an empty table has a high ratio too."""
_NOTHING_PACKED = 2
"""The number of bytes that some packers write for a directory: empty data, deflated."""


def read_archive(data: bytes, filename: str) -> Package:
    """Return the package in an uploaded file. Raises `InvalidSkill` with all problems.

    A `filename` that ends with `.md` is a SKILL.md alone. Any other file is a zip archive with the
    package's files at its root or in one directory.
    """
    package, problems = archive_package(data, filename)
    if package is None:
        raise refused(problems)
    return package


def archive_package(data: bytes, filename: str) -> tuple[Package | None, list[Problem]]:
    """Return (the package, all problems) for an uploaded file.

    The package is None if one of the problems is an error. `filename` determines the type, as in
    `read_archive`.
    """
    if filename.lower().endswith(".md"):
        return read_package([PackageFile(SKILL_FILE, data)])
    limits = SkillSettings.now()
    if len(data) > limits.ARCHIVE_BYTES:
        message = f"The archive exceeds the limit of {limits.ARCHIVE_BYTES:,} bytes."
        return None, [error("too_large", message)]
    if not data.startswith((b"PK\3\4", b"PK\5\6")):
        message = "It is not a zip archive: pack the skill's directory as .zip or .skill."
        return None, [error("archive", message)]
    try:
        entries = read_entries(data, 2 * limits.FILES)
        wrong = _entry_problems(entries)
        if wrong:
            return None, wrong
        left_out = [entry.name for entry in entries if _is_left_out(entry.name)]
        kept = [e for e in entries if not e.is_directory and not _is_left_out(e.name)]
        top, wrong = _top_directory([entry.name for entry in kept])
        if wrong:
            return None, [*junk_problems(left_out), *wrong]
        files = _unpacked(data, kept, top)
    except InvalidSkill as refusal:
        return None, list(refusal.problems) or [error("archive", str(refusal))]
    package, problems = read_package(files, top.removesuffix("/") or None)
    problems = [*junk_problems(left_out), *problems]
    if package is None:
        return None, problems
    return Package(
        package.head, package.text, package.body, package.files, tuple(problems)
    ), problems


def _entry_problems(entries: list[ZipEntry]) -> list[Problem]:
    """Return the errors of entries whose paths lead out of the package, also of omitted entries."""
    problems = []
    for entry in entries:
        wrong = unsafe_path(entry.name.removesuffix("/") if entry.is_directory else entry.name)
        if wrong:
            problems.append(error("path", wrong, shown_path(entry.name)))
    for entry in entries:
        kind = stat.S_IFMT(entry.mode)
        wanted = stat.S_IFDIR if entry.is_directory else stat.S_IFREG
        if kind == stat.S_IFLNK:
            message = "It is a link: pack the file itself."
        elif kind not in (0, wanted):
            message = "It is neither a plain file nor a directory: leave it out."
        elif entry.is_directory and (entry.size or entry.packed > _NOTHING_PACKED):
            message = "It is a directory with content: pack it again."
        else:
            continue
        problems.append(error("special", message, shown_path(entry.name)))
    return problems


def _is_left_out(name: str) -> bool:
    return any(is_junk(part) for part in name.split("/"))


def _top_directory(names: list[str]) -> tuple[str, list[Problem]]:
    """Return (the prefix of the package's paths, all problems).

    The prefix is the directory with a slash, "" for the root of the archive.
    """
    if any(is_skill_file(name) for name in names):
        return "", []
    skills = sorted(name for name in names if is_skill_file(PurePosixPath(name).name))
    tops = {name.partition("/")[0] for name in names}
    inside = [name for name in skills if name.count("/") == 1]
    if len(tops) == 1 and len(inside) >= 1:
        return f"{tops.pop()}/", []
    if not skills:
        return "", [error("missing", "Missing required file: SKILL.md, which makes it a skill.")]
    shown = ", ".join(map(shown_path, skills[:5])) + (" …" if len(skills) > 5 else "")
    if len(skills) > 1:
        message = f"The archive contains several skills ({shown}): pack each separately."
    else:
        message = f"SKILL.md is at {shown}: pack it at the root, or one directory that has all."
    return "", [error("missing", message)]


def _unpacked(data: bytes, entries: list[ZipEntry], top: str) -> list[PackageFile]:
    """Return the unpacked files.

    The limits count the bytes that are really unpacked, not the sizes in the archive.
    """
    limits = SkillSettings.now()
    if len(entries) > limits.FILES:
        raise refused([too_many_files()])
    left = limits.PACKAGE_BYTES
    suspicious = max(_UNSUSPICIOUS, MAX_RATIO * len(data))
    files, problems = [], []
    for entry in entries:
        path = entry.name.removeprefix(top)
        limit = file_limit(path)
        content = _content(data, entry, min(limit, left))
        if content is None and limit <= left:
            problems.append(file_too_large(path))
            continue
        if content is None:
            problems.append(package_too_large())
            break
        left -= len(content)
        if limits.PACKAGE_BYTES - left > suspicious:
            raise InvalidSkill(
                f"The archive unpacks to more than {MAX_RATIO} times its size: it is refused as a "
                "bomb."
            )
        files.append(PackageFile(path, content, bool(entry.mode & 0o100)))
    if problems:
        raise refused(problems)
    return files


def _content(data: bytes, entry: ZipEntry, limit: int) -> bytes | None:
    """Return the content of `entry`, None if it has more than `limit` bytes.

    Raises `InvalidSkill` if the entry is damaged.
    """
    packed = memoryview(data)[entry.begin : entry.begin + entry.packed]
    if entry.method == DEFLATED:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = unpacker.decompress(packed, limit + 1)
        except zlib.error:
            raise _damaged(entry) from None
        is_whole = unpacker.eof and not unpacker.unused_data
    else:
        content, is_whole = bytes(packed[: limit + 1]), True
    if len(content) > limit:
        return None
    if not is_whole or len(content) != entry.size or zlib.crc32(content) != entry.crc:
        raise _damaged(entry)
    return content


def _damaged(entry: ZipEntry) -> InvalidSkill:
    return InvalidSkill(
        f"{shown_path(entry.name)} is damaged or has another size than stated: pack it again."
    )
