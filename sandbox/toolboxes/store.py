"""Changes of the directory of toolboxes: one at a time, and each is atomic.

A generation is built under a temporary name, then moved into place, and then named in `current`,
which is replaced in one step. The next change removes the remains of an interrupted change.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.directories.removal import remove_tree
from sandbox.errors import SandboxSetupError
from sandbox.reach import unreachable_directory
from sandbox.toolboxes.find import toolbox_names
from sandbox.toolboxes.toolbox import CURRENT, MANIFEST, check_name, check_operators_own, missing
from sandbox.uids import uid_for

_LOCK = ".lock"
_BUILDING = ".building-"
_REMOVED = ".removed-"


class ToolboxStore:
    """The right to change `base`, from `open_store` until it is closed.

    `lock` is the descriptor that excludes other builds. A process that may outlive this one while
    it still writes must inherit it, so that the next build waits for that process too.
    """

    def __init__(self, base: Path, lock: int) -> None:
        self.base = base
        self.lock = lock

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a new directory on the same file system; afterwards, remove it if it exists."""
        directory = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=self.base))
        try:
            directory.chmod(0o755)
            yield directory
        finally:
            remove_tree(directory)

    def publish(self, name: str, staged: Path) -> str:
        """Make the complete directory `staged` the newest generation. Return its id.

        Removes generations that are not in use. Raises `ToolboxError` if another account could
        change the toolbox.
        """
        own = self.base / name
        try:
            own.mkdir(mode=0o755)
            own.chmod(0o755)
        except FileExistsError:
            pass
        _check_own(own, name)
        generation = secrets.token_hex(8)
        staged.rename(own / generation)
        fresh = own / f".{generation}"
        with fresh.open("x") as file:
            file.write(generation)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(own / CURRENT)
        self.prune()
        return generation

    def remove(self, name: str) -> bool:
        """Remove a toolbox. Return False if its files stay until nobody uses them any more.

        The name disappears immediately. Raises `ToolboxError` if there is no such toolbox.
        """
        if check_name(name) not in toolbox_names(self.base):
            raise missing(name)
        own = self.base / name
        if own.is_symlink():
            own.unlink()  # a link that Vel did not create: its target stays unchanged
            return True
        (own / CURRENT).unlink()
        self.prune()
        return not own.exists()

    def prune(self) -> None:
        """Remove generations that are not in use, except the newest one of each name."""
        for own in self.base.iterdir():
            if own.name.startswith(".") or own.is_symlink() or not own.is_dir():
                continue
            current = own / CURRENT
            kept = current.read_text().strip() if current.is_file() else ""
            for generation in own.iterdir():
                if generation.name not in (kept, CURRENT):
                    self._remove_unused(generation)
            if not kept and not current.exists() and not any(own.iterdir()):
                own.rmdir()

    def _remove_unused(self, generation: Path) -> None:
        if generation.is_symlink() or not generation.is_dir():
            generation.unlink()
            return
        lock = None
        try:
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                lock = os.open(generation / MANIFEST, flags)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except FileNotFoundError:
                pass  # never complete, and so never used
            except BlockingIOError:
                return
            # Rename first, so that an interrupted removal leaves no apparently complete directory.
            doomed = self.base / f"{_REMOVED}{secrets.token_hex(8)}"
            generation.rename(doomed)
            remove_tree(doomed)
        finally:
            if lock is not None:
                os.close(lock)

    def sweep(self) -> None:
        """Remove the remains of interrupted changes. Call this only with the lock."""
        for entry in self.base.iterdir():
            if entry.name.startswith((_BUILDING, _REMOVED)):
                if entry.is_dir() and not entry.is_symlink():
                    remove_tree(entry)
                else:
                    entry.unlink()
        self.prune()


@contextmanager
def open_store(base: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[ToolboxStore]:
    """Wait for the right to change the toolboxes in `base`, which is created if it is missing.

    A context manager. `on_wait` is called if another process has this right. Raises
    `SandboxSetupError` if commands could not reach `base`, `ToolboxError` if other accounts can
    write it, and OSError.
    """
    base = base.resolve()
    if not base.is_dir():
        base.mkdir(parents=True, exist_ok=True)  # another build may create it at the same time
        base.chmod(0o755)  # independent of the umask: sandbox accounts pass through
    _check_own(base, base.name)
    if os.geteuid() == 0:
        closed = unreachable_directory(base, uid_for(0))
        if closed is not None:
            raise SandboxSetupError(
                f"Toolboxes cannot be kept in {base}: the accounts of sandboxes cannot enter "
                f"{closed}. Use a data directory that every account can enter, e.g. /var/lib/vel."
            )
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(base / _LOCK, flags, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        store = ToolboxStore(base, lock)
        store.sweep()
        yield store
    finally:
        os.close(lock)


def _check_own(directory: Path, name: str) -> None:
    check_operators_own(directory.lstat(), str(directory), name)
    if directory.is_symlink():
        raise NotADirectoryError(20, "is a link, which is not followed here", str(directory))
