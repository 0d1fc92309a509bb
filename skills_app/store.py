"""Sets of skills unpacked on this host, for sandboxes to mount: `<store>/sets/<id>/<name>/…`.

A set's directory is made under another name and renamed when it is whole, is never changed
after that, and belongs to the account of this process. Its bytes come from the database, checked
against their hashes. Sets share packages by hard links to `<store>/packages/<hash>/`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from skills_app.conf import store_directory
from skills_app.package import PackageFile, hash_files
from skills_app.pinned import PinnedSkill

_DIRECTORY_MODE = 0o755
_EMPTY = "empty"


def unpacked(
    set_id: str | None,
    skills: Sequence[PinnedSkill],
    files_of: Callable[[int], Sequence[PackageFile]],
) -> Path:
    """The directory with a subdirectory for each of `skills`, made if it is missing.

    `files_of` gives the files of a version by its id; it is called for what is not there yet.
    Raises OSError when the store cannot be written, ValueError when bytes are not what their
    hash says.
    """
    sets = _made(store_directory() / "sets")
    target = sets / (set_id or _EMPTY)
    if target.is_dir():
        return target
    temporary = sets / f".{secrets.token_hex(8)}"
    _mkdir(temporary)
    try:
        for skill in skills:
            package = _package(skill, files_of)
            _link_tree(package, temporary / skill.name)
        os.rename(temporary, target)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not target.is_dir():  # else another process was faster
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def _package(skill: PinnedSkill, files_of: Callable[[int], Sequence[PackageFile]]) -> Path:
    packages = _made(store_directory() / "packages")
    target = packages / skill.content_hash
    if target.is_dir():
        return target
    files = files_of(skill.version_id)
    digest = hash_files((file.path, file.executable, file.sha256) for file in files)
    if digest != skill.content_hash:
        raise ValueError(f"The stored files of the skill {skill.name} are not what they were.")
    temporary = packages / f".{secrets.token_hex(8)}"
    _mkdir(temporary)
    try:
        for file in files:
            _write(temporary, file)
        os.rename(temporary, target)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not target.is_dir():
            raise
    return target


def _write(root: Path, file: PackageFile) -> None:
    place = root
    *parents, name = file.path.split("/")
    for parent in parents:
        place = place / parent
        if not place.is_dir():
            _mkdir(place)
    mode = 0o555 if file.executable or file.data.startswith(b"#!") else 0o444
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(place / name, flags, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.data)
        os.fchmod(stream.fileno(), mode)


def _link_tree(source: Path, target: Path) -> None:
    _mkdir(target)
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            _link_tree(Path(entry.path), target / entry.name)
        else:
            os.link(entry.path, target / entry.name, follow_symlinks=False)


def _made(directory: Path) -> Path:
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        for made in (directory.parent, directory):
            os.chmod(made, _DIRECTORY_MODE)
    return directory


def _mkdir(directory: Path) -> None:
    directory.mkdir()
    os.chmod(directory, _DIRECTORY_MODE)  # whatever the umask says: sandboxes read it
