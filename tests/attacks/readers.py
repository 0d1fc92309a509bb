"""Hostile files that could make the host, in its own process, read or write outside.

Each attempt is made on a naive reader, where it must succeed, and then on Vel's reader.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox import CompositeBackend, SandboxFilesystemBackend, StateFilesystemBackend
from sandbox.backends import TreeBackend, WorkspaceBackend
from sandbox.backends.tools import FileTools
from sandbox.paths import AREAS
from tests.attacks.world import World

PATIENCE = 0.7
LONG_PATIENCE = 20.0
"""Time limits in seconds: for a naive reader, and a longer one for Vel's, against false alarms."""


@dataclass(frozen=True, slots=True)
class Trial:
    """`tree` belongs to the agent, `outside` does not; `backend` shows the tree at `home`."""

    tree: Path
    outside: Path
    backend: FileTools
    home: str = ""

    def at(self, name: str) -> str:
        return f"{self.home}/{name}"

    @property
    def secret_path(self) -> Path:
        return self.outside / "secret"


@dataclass(frozen=True, slots=True)
class Reading:
    """`plant` is the agent's action. It returns a process that continues, if there is one.

    `naive` and `guarded` return their result as text. `proof`: the text contains the planted
    secret; or the text is SUCCESS; or a file outside has changed; or the reader never ends (or
    uses unlimited memory).
    """

    name: str
    kind: str
    plant: Callable[[Trial], int | None]
    naive: Callable[[Trial], object]
    guarded: Callable[[Trial], object]
    proof: Literal["secret", "printed", "written", "hang"] = "secret"
    on_disk_only: bool = True


def _over_tree(place: Path) -> tuple[Path, FileTools, str]:
    work = place / "agent"
    return work, SandboxFilesystemBackend(work), ""


def _over_workspace(place: Path) -> tuple[Path, FileTools, str]:
    for area in AREAS:
        (place / "agent" / area).mkdir()
    return place / "agent/workspace", WorkspaceBackend(place / "agent"), "/sandbox/workspace"


def _over_mount(place: Path) -> tuple[Path, FileTools, str]:
    work = place / "agent"
    backend = CompositeBackend(StateFilesystemBackend(), {"/files": TreeBackend(work)})
    return work, backend, "/files"


def _over_state(place: Path) -> tuple[Path, FileTools, str]:
    return place / "agent", StateFilesystemBackend(), ""


BACKENDS = {
    "SandboxFilesystemBackend": _over_tree,
    "WorkspaceBackend": _over_workspace,
    "CompositeBackend": _over_mount,
    "StateFilesystemBackend": _over_state,
}


def run(world: World, readings: Sequence[Reading]) -> dict[str, dict[str, dict[str, object]]]:
    """Return `success` and `output` of each attempt by name, for "without" and each backend."""

    # Most of the naive readers only hang. They run in processes, not in threads: a fork of one
    # reader must not keep the pipes of another.
    _given[:] = [(world, reading) for reading in readings]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = pool.map(_outcomes_of, range(len(readings)), chunksize=1)
    return {reading.name: each for reading, each in zip(readings, found, strict=True)}


_given: list[tuple[World, Reading]] = []
"""State that the processes of `run` inherit."""


def _outcomes_of(number: int) -> dict[str, dict[str, object]]:
    world, reading = _given[number]
    with _trial(world, _over_tree) as trial:
        found = {"without": _attempt(reading, reading.naive, trial, world)}
    for name, over in BACKENDS.items():
        if reading.on_disk_only and over is _over_state:
            continue
        with _trial(world, over) as trial:
            found[name] = _attempt(reading, reading.guarded, trial, world)
    return found


@contextmanager
def _trial(world: World, over: Callable[[Path], tuple[Path, FileTools, str]]) -> Iterator[Trial]:
    place = Path(tempfile.mkdtemp(dir=world.place))
    place.chmod(0o711)
    for directory in ("agent", "outside"):
        (place / directory).mkdir(mode=0o700)
        world.own(place / directory)
    world.file(place / "outside/secret", world.secret)
    world.file(place / f"outside/named-{world.secret}", "")
    tree, backend, home = over(place)
    try:
        yield Trial(tree, place / "outside", backend, home)
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=True)


def _attempt(
    reading: Reading, reader: Callable[[Trial], object], trial: Trial, world: World
) -> dict[str, object]:
    """Run an attempt in a child process with limits of time and memory."""
    accomplice = reading.plant(trial)
    try:
        return _attempt_planted(reading, reader, trial, world)
    finally:
        if accomplice is not None:
            os.kill(accomplice, signal.SIGKILL)
            os.waitpid(accomplice, 0)


def _attempt_planted(
    reading: Reading, reader: Callable[[Trial], object], trial: Trial, world: World
) -> dict[str, object]:
    before = _contents(trial.outside)
    reading_end, writing_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading_end)
        guarded = reader is reading.guarded
        short = reading.proof == "hang" and not guarded
        signal.setitimer(signal.ITIMER_REAL, PATIENCE if short else LONG_PATIENCE)
        limit = 4 << 30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        text = ""
        try:
            os.chdir(trial.tree)
            text = str(reader(trial))
        except MemoryError:
            text = "HANG: memory without end"
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
            text = f"{type(error).__name__}: {error}"
        os.write(writing_end, text.encode(errors="backslashreplace")[:60_000])
        os._exit(0)
    os.close(writing_end)
    with os.fdopen(reading_end, "rb") as stream:
        text = stream.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    hung = os.WIFSIGNALED(status) or text.startswith("HANG")
    success = {
        "secret": world.secret in text,
        "printed": "SUCCESS" in text,
        "written": _contents(trial.outside) != before,
        "hang": hung,
    }[reading.proof]
    if hung and reader is reading.guarded:
        success = True
    output = "hangs" if hung else text[-300:]
    return {"success": success, "output": output}


def _contents(directory: Path) -> dict[str, bytes | str]:
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in directory.rglob("*")
        if path.is_symlink() or path.is_file()
    }
