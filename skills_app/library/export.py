"""Export a package in the strict form of the specification, for other programs.

The result is a list of files, a directory or an archive. If the YAML at the start of SKILL.md is
not strict, it is written again from the fields that Vel read. The body and all other files stay the
same, byte for byte.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from skills_app.library.carried import carried_metadata
from skills_app.library.frontmatter import read_skill
from skills_app.library.head import read_head
from skills_app.library.package import SKILL_FILE, Head, Package, PackageFile, errors_of
from skills_app.library.paths import path_problems
from skills_app.library.problems import InvalidSkill
from skills_app.library.read import refused
from skills_app.library.strict import strict_problems
from skills_app.settings import SkillSettings

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.]*(?:[ -][A-Za-z0-9_.]+)*")
_NO_TEXT = frozenset({"false", "n", "no", "null", "off", "on", "true", "y", "yes"})
"""Words that YAML readers do not read as text, so an export quotes them."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of all archive entries, so that the same files give the same bytes."""


def export_files(source: Package | Sequence[PackageFile], head: Head) -> list[PackageFile]:
    """Return the files of `source`, with `head` as the fields of SKILL.md in strict form.

    `enabled` is not exported, because it is the choice of an agent. Raises `InvalidSkill` if there
    is no SKILL.md or the head would be too long.
    """
    files = source.files if isinstance(source, Package) else source
    skill = next((file for file in files if file.path == SKILL_FILE), None)
    if skill is None:
        raise InvalidSkill("There is no SKILL.md to export.")
    text = skill.data.decode()
    fields, body = read_skill(text)
    if not _is_strict(text, fields, head):
        skill = PackageFile(SKILL_FILE, (head_text(head) + body).encode(), skill.executable)
    return sorted(
        [skill, *(file for file in files if file.path != SKILL_FILE)], key=lambda file: file.path
    )


def head_text(head: Head) -> str:
    """Return `head` as the start of a SKILL.md, with both `---` lines.

    Strict readers, and Vel, read the same values back. Raises `InvalidSkill` if it would be too
    long.
    """
    fields: dict[str, str] = {"name": head.name, "description": head.description}
    if head.license:
        fields["license"] = head.license
    if head.compatibility:
        fields["compatibility"] = head.compatibility
    if head.allowed_tools is not None:
        fields["allowed-tools"] = " ".join(head.allowed_tools)
    lines = _lines(fields)
    metadata = carried_metadata(head)
    if metadata:
        lines += ["metadata:", *(f"  {line}" for line in _lines(metadata))]
    written = "".join(f"{line}\n" for line in lines)
    limit = SkillSettings.now().HEAD_BYTES
    if len(written.encode()) > limit:
        raise InvalidSkill(f"The head would be longer than {limit:,} bytes: shorten it.")
    return f"---\n{written}---\n"


def write_folder(directory: Path, files: Sequence[PackageFile]) -> None:
    """Create the directory `directory` with exactly `files`.

    `directory` must be new or empty and not a link. It should have the name of the skill. The files
    are written to a sibling directory, which then replaces `directory` in one step. Raises
    `InvalidSkill` or OSError, and then changes nothing.
    """
    _require_paths(files)
    target = Path(os.path.abspath(directory))
    if target.is_symlink():
        raise InvalidSkill(f"{directory} is a link: name the directory itself.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidSkill(f"{directory} already exists: name a new or an empty directory.")
    if not target.name or not target.parent.is_dir():
        raise InvalidSkill(f"There is no directory {target.parent}: create it first.")
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
    temporary.mkdir()
    try:
        for file in files:
            path = temporary / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o755 if file.executable else 0o644
            with os.fdopen(os.open(path, _NEW, mode), "wb") as stream:
                stream.write(file.data)
        try:
            temporary.rename(target)
        except OSError as problem:
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise InvalidSkill(f"Another program has created {directory}: check it.") from None
    except BaseException:
        shutil.rmtree(temporary)
        raise


def write_archive(name: str, files: Sequence[PackageFile]) -> bytes:
    """Return a zip archive, also called `.skill`, with `files` in a directory `name`.

    The same files give the same bytes. Raises `InvalidSkill` for invalid paths.
    """
    _require_paths(files)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files, key=lambda file: file.path):
            entry = zipfile.ZipInfo(f"{name}/{file.path}", _EARLIEST)
            entry.create_system = 3
            entry.external_attr = (0o100755 if file.executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.data)
    return packed.getvalue()


def _is_strict(text: str, fields: Mapping[str, object], head: Head) -> bool:
    """Return whether the SKILL.md `text` is strict already and has the values of `head`."""
    said, problems = read_head(read_skill(text)[0])
    return not problems and said == head and "enabled" not in fields and not strict_problems(text)


def _lines(values: Mapping[str, str]) -> list[str]:
    return [f"{_scalar(key)}: {_scalar(text)}" for key, text in values.items()]


def _scalar(text: str) -> str:
    """Return `text` as a YAML value, in quotes unless every reader would read it as that text.

    `---` is escaped, because the reference reader would end the head there.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT:
        return text
    quoted = yaml.dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return quoted.removesuffix("\n").replace("---", "--\\x2D")


def _require_paths(files: Sequence[PackageFile]) -> None:
    problems = path_problems([file.path for file in files])
    if errors_of(problems):
        raise refused(problems)
