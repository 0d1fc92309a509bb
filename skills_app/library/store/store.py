"""Unpack skills on this host, for sandboxes to mount: `<store>/sets/<key>/<name>/…`.

A set's directory is made under another name, renamed when it is complete, and never changed after
that. It belongs to the account of this process. Its bytes come from the database. Sets share
packages by hard links to `<store>/packages/<hash>/`. The key depends on names and hashes, not on
rows, so databases may share a store.

A store that other accounts can change is refused. Each process hashes existing contents at their
first use. It moves invalid ones away and creates them again.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.reach import unreachable_directory
from sandbox.uids import uid_for
from skills_app.library.package import PackageFile, hash_files
from skills_app.library.pinned import PinnedSkill
from skills_app.settings import SkillSettings

logger = logging.getLogger(__name__)

DIRECTORY_MODE = 0o755
ASIDE = ".aside-"
"""The prefix of invalid directories. Names that start with a dot are never used."""
_checked: dict[str, tuple[int, int, int]] = {}
"""(device, inode, change time in ns) of each set and package that this process has hashed."""


def set_key(skills: Sequence[PinnedSkill]) -> str:
    """Return the key of a set: the name of the directory for exactly these skills."""
    lines = sorted(f"{skill.name} {skill.content_hash}\n" for skill in skills)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def unpacked(
    skills: Sequence[PinnedSkill], files_of: Callable[[int], Sequence[PackageFile]]
) -> Path:
    """Return the directory with a subdirectory for each of `skills`. It is created if missing.

    `files_of` returns the files of a version by its id. It is called only for missing packages.
    Raises OSError if the store cannot be written or others can write to it, and ValueError if bytes
    do not have their hash.
    """
    store = SkillSettings.now().store_directory
    with held_store(store, exclusive=False):
        sets = _made(store / "sets")
        packages = _made(store / "packages")
        target = sets / set_key(skills)
        if not _is_good(target, lambda: _set_is_good(target, skills)):
            _make(target, lambda place: _link_set(place, packages, skills, files_of))
            _note_checked(target)
        _note_used(store, target.name)
    return target


def used_mark(store: Path, key: str) -> Path:
    """Return the path of the file whose modification time is the last use of the set `key`."""
    return store / "used" / key


def _note_used(store: Path, key: str) -> None:
    _made(store / "used")
    mark = os.open(used_mark(store, key), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.utime(mark)
    finally:
        os.close(mark)


@contextmanager
def held_store(store: Path, *, exclusive: bool) -> Iterator[None]:
    """Lock the store during the `with` block.

    Processes that unpack skills share the lock. Pruning needs an exclusive lock, so that it removes
    no package to which a process is making hard links.
    """
    _made(store)
    check_place(store)
    lock = os.open(store / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _link_set(
    place: Path,
    packages: Path,
    skills: Sequence[PinnedSkill],
    files_of: Callable[[int], Sequence[PackageFile]],
) -> None:
    for skill in skills:
        package = packages / skill.content_hash
        if not _is_good(package, lambda: tree_hash(package) == skill.content_hash):  # noqa: B023
            _make(package, lambda made: _write_package(made, skill, files_of))  # noqa: B023
            _note_checked(package)
        _link_tree(package, place / skill.name)


def _make(target: Path, fill: Callable[[Path], None]) -> None:
    """Create the directory `target`: `fill` fills it under another name, then it is renamed.

    If another process creates `target` first, that one is used.
    """
    temporary = target.parent / f".{secrets.token_hex(8)}"
    _mkdir(temporary)
    try:
        fill(temporary)
        os.rename(temporary, target)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not target.is_dir():
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _is_good(target: Path, check: Callable[[], bool]) -> bool:
    """Return whether `target` exists and is valid. An invalid one is moved away."""
    try:
        now = _identity(target)
    except FileNotFoundError:
        return False
    if _checked.get(str(target)) == now:
        return True
    if check():
        _checked[str(target)] = now
        return True
    logger.error("skills in the store have changed and are unpacked again: %s", target)
    aside = target.parent / f"{ASIDE}{secrets.token_hex(8)}"
    try:
        os.rename(target, aside)
    except FileNotFoundError:
        pass  # another process did it
    return False


def _set_is_good(target: Path, skills: Sequence[PinnedSkill]) -> bool:
    if sorted(os.listdir(target)) != sorted(skill.name for skill in skills):
        return False
    return all(tree_hash(target / skill.name) == skill.content_hash for skill in skills)


def _identity(target: Path) -> tuple[int, int, int]:
    status = os.lstat(target)
    if not stat.S_ISDIR(status.st_mode):
        return (-1, -1, -1)  # never the checked state
    return (status.st_dev, status.st_ino, status.st_ctime_ns)


def _note_checked(target: Path) -> None:
    _checked[str(target)] = _identity(target)


def _write_package(
    place: Path, skill: PinnedSkill, files_of: Callable[[int], Sequence[PackageFile]]
) -> None:
    files = files_of(skill.version_id)
    digest = hash_files((file.path, file.executable, file.sha256) for file in files)
    if digest != skill.content_hash:
        raise ValueError(f"The stored files of the skill {skill.name} have changed.")
    for file in files:
        _write(place, file)


def _write(root: Path, file: PackageFile) -> None:
    place = root
    *parents, name = file.path.split("/")
    for parent in parents:
        place = place / parent
        if not place.is_dir():
            _mkdir(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(place / name, flags, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.data)
        os.fchmod(stream.fileno(), mode_of(file))


def _link_tree(source: Path, target: Path) -> None:
    _mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _link_tree(Path(entry.path), target / entry.name)
            else:
                os.link(entry.path, target / entry.name, follow_symlinks=False)


def _made(directory: Path) -> Path:
    if not directory.is_dir():
        if not directory.parent.is_dir():
            _made(directory.parent)
        try:
            _mkdir(directory)
        except FileExistsError:
            pass  # another process made it
    return directory


def _mkdir(directory: Path) -> None:
    directory.mkdir()
    os.chmod(directory, DIRECTORY_MODE)  # regardless of the umask: sandboxes read it


_EXECUTABLE, _SCRIPT, _PLAIN = 0o555, 0o545, 0o444
"""The file modes of a package.

The group's bit distinguishes a file that is executable in its source from a script that is
executable only here.
"""


def mode_of(file: PackageFile) -> int:
    """Return the mode of a file. A script is executable even if its archive has no modes."""
    if file.executable:
        return _EXECUTABLE
    return _SCRIPT if file.data.startswith(b"#!") else _PLAIN


def tree_hash(package: Path) -> str:
    """Return the content hash of an unpacked package.

    Returns "" if it cannot be read, or has entries that no package has.
    """
    try:
        return hash_files(_files(package, ""))
    except (OSError, ValueError):
        return ""


def _files(directory: Path, prefix: str) -> Iterator[tuple[str, bool, str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            path = f"{prefix}{entry.name}"
            if stat.S_ISDIR(status.st_mode):
                yield from _files(Path(entry.path), f"{path}/")
                continue
            mode = stat.S_IMODE(status.st_mode)
            if not stat.S_ISREG(status.st_mode) or mode not in (_EXECUTABLE, _SCRIPT, _PLAIN):
                raise ValueError(f"{path} is not a file of a package")
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            yield path, mode == _EXECUTABLE, digest


def check_place(store: Path) -> None:
    """Raise OSError, with advice, if another account could change the contents of `store`.

    As root, also if the accounts of sandboxes cannot reach it.
    """
    own = os.geteuid()
    place = store.resolve()
    status = place.stat()
    if status.st_uid != own:
        raise OSError(
            f"The store of skills {place} belongs to uid {status.st_uid}, and this process is uid "
            f"{own}: set VEL_SKILLS['STORE'] to another directory."
        )
    for directory in (place, *place.parents):
        if why := _open_to_others(directory, own):
            raise OSError(
                f"The store of skills {place} is not safe: {why}, so another account could change "
                "the code that agents run. Change that, or set VEL_SKILLS['STORE'] to another "
                "directory."
            )
    if own == 0 and (closed := unreachable_directory(place, uid_for(0))) is not None:
        raise OSError(
            f"The store of skills {place} cannot be used as root: the accounts of sandboxes cannot "
            f"enter {closed}. Set VEL_SKILLS['STORE'] to a place like /var/lib/vel/skills."
        )


def _open_to_others(directory: Path, own: int) -> str:
    status = directory.stat()
    if status.st_uid not in (0, own):
        return f"{directory} belongs to uid {status.st_uid}"
    if status.st_mode & stat.S_ISVTX:
        return ""  # only owners move their files
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write in {directory}"
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid()):
        return f"the group {status.st_gid} may write in {directory}"
    return ""
