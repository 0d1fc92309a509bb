"""Attacks on the host's own readers and writers: file tools, archives, snapshots, names."""

from __future__ import annotations

import ctypes
import fcntl
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from sandbox.directories.archive import write_archive
from sandbox.directories.removal import remove_tree
from sandbox.errors import FileError
from sandbox.snapshots import SnapshotStore, restore
from tests.attacks.readers import Reading, Trial

FILES = "host-side readers"
RACES = "links and races"
ARCHIVES = "archives"
NAMES = "terminal and log injection"
EVIL = "\x1b]0;owned\x07\n2026-01-01 root: all is well \x9b31m\u202e"


# Files that agents plant


Plant = Callable[[Trial], "int | None"]


def _link(target: Callable[[Trial], object], name: str = "x") -> Plant:
    return lambda t: os.symlink(str(target(t)), t.tree / name)


def _chain(t: Trial) -> None:
    for name, target in (("x", "y"), ("y", "z"), ("z", t.secret_path)):
        os.symlink(target, t.tree / name)


def _set_uid(t: Trial) -> None:
    (t.tree / "x").write_text("x")
    (t.tree / "x").chmod(0o6755)


def _target(t: Trial) -> None:
    (t.outside / "target").write_text("untouched")


_secret_link = _link(lambda t: t.secret_path)
_outside_link = _link(lambda t: t.outside)


def _fifo(t: Trial) -> None:
    os.mkfifo(t.tree / "x")


def _sparse(t: Trial) -> None:
    (t.tree / "x").touch()
    os.truncate(t.tree / "x", 1 << 42)


def _hard_link(t: Trial) -> None:
    (t.outside / "target").write_text("untouched")
    os.link(t.outside / "target", t.tree / "x")


def _leased(t: Trial) -> int:
    """Let another process of the agent take a lease on the file and never release it."""
    (t.tree / "x").write_text("leased")
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        return pid
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    descriptor = os.open(t.tree / "x", os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.write(writing, b"x")
    while True:
        signal.pause()


def _swapping(harmless: str) -> Plant:
    """Plant a file or a directory that is exchanged with a link as fast as possible."""

    def plant(t: Trial) -> int:
        one, other = t.tree / "x", t.tree / "y"
        if harmless == "file":
            one.write_text("harmless")
            other.symlink_to(t.secret_path)
        else:
            one.mkdir()
            (one / "secret").write_text("harmless")
            other.symlink_to(t.outside)
        if pid := os.fork():
            return pid
        swap = ctypes.CDLL(None).renameat2
        while True:
            swap(-100, bytes(one), -100, bytes(other), 2)

    return plant


def _bait(t: Trial) -> None:
    (t.tree / "x").write_text("a" * 60 + "!")


def _nothing(t: Trial) -> None:
    pass


def _deep(t: Trial) -> None:
    here = os.open(t.tree, os.O_RDONLY)
    for _ in range(1100):  # Python's limit of nested calls is 1,000
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def _named(name: str) -> Plant:
    return lambda t: (t.tree / name).touch()


# Naive readers


def _open(name: str = "x") -> Callable[[Trial], str]:
    return lambda t: (t.tree / name).read_text()


def _join(name: Callable[[Trial], str]) -> Callable[[Trial], str]:
    return lambda t: Path(os.path.join(t.tree, name(t))).read_text()


def _write(name: str) -> Callable[[Trial], object]:
    return lambda t: (t.tree / name).write_text("overwritten")


def _checked_then_opened(name: str) -> Callable[[Trial], str]:
    def read(t: Trial) -> str:
        path = t.tree / name
        end = time.monotonic() + PATIENCE_OF_RACES * 40
        while time.monotonic() < end:
            try:
                if os.path.realpath(path).startswith(f"{t.tree}/"):
                    found = path.read_text()
                    if found != "harmless":
                        return found
            except OSError:
                continue  # it changed in between
        return ""

    return read


def _checked_then_written(t: Trial) -> None:
    path = t.tree / "x/new"
    end = time.monotonic() + PATIENCE_OF_RACES * 40
    while time.monotonic() < end and not (t.outside / "new").exists():
        try:
            if os.path.realpath(path).startswith(f"{t.tree}/"):
                os.sched_yield()
                path.write_text("x")
        except OSError:
            continue  # it changed in between


PATIENCE_OF_RACES = 0.4
"""Seconds."""


# Vel's readers


def _tool(name: str, *arguments: object, at: str = "x") -> Callable[[Trial], object]:
    return lambda t: getattr(t.backend, name)(t.at(at), *arguments)


def _many(name: str, *arguments: object, at: str = "x") -> Callable[[Trial], object]:
    def repeat(t: Trial) -> str:
        results, end = set(), time.monotonic() + PATIENCE_OF_RACES
        while time.monotonic() < end:
            results.add(json.dumps(getattr(t.backend, name)(t.at(at), *arguments)))
        return "".join(results)

    return repeat


def _all_reading_tools(name: Callable[[Trial], str]) -> Callable[[Trial], object]:
    def use(t: Trial) -> list[object]:
        path = name(t)
        tools = t.backend
        return [
            tools.read_file(path),
            tools.ls(path),
            tools.grep("secret", path)["error"] if "error" in tools.grep("secret", path) else
            tools.grep("secret", path)["matches"],
            tools.edit_file(path, "secret", "changed"),
        ]  # fmt: skip

    return use


def _archived(t: Trial) -> str:
    """Return the contents of Vel's archive of the tree, unpacked as an operator would."""
    target = t.tree.parent / "made.tar.gz"
    try:
        done = write_archive({"workspace": t.tree}, target)
        out = t.tree.parent / "unpacked"
        with tarfile.open(target) as archive:
            members = {member.name: oct(member.mode) for member in archive}
            trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(out, **trusted)  # type: ignore[arg-type]
        return f"{members} {done.left_out} {_seen(out)}"
    finally:
        target.unlink(missing_ok=True)


def _seen(out: Path) -> list[str]:
    seen = []
    for name in ("x", "x/secret"):
        path = out / "workspace" / name
        if path.is_file():
            seen.append(path.read_text())
            if path.stat().st_mode & 0o6000:
                seen.append("SUCCESS")
    return seen


def _zipped(t: Trial) -> str:
    with zipfile.ZipFile(t.tree.parent / "z.zip", "w") as archive:
        for top, _, names in os.walk(t.tree, followlinks=True):
            for name in names:
                archive.write(os.path.join(top, name))
        return str([archive.read(name) for name in archive.namelist()])


def _tarred(t: Trial) -> str:
    target = t.tree.parent / "naive.tar"
    with tarfile.open(target, "w") as archive:
        archive.add(t.tree, "workspace")
    out = t.tree.parent / "unpacked"
    trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(target) as archive:
        archive.extractall(out, **trusted)  # type: ignore[arg-type]
    return str(_seen(out))


def _snapshot(t: Trial) -> str:
    store = t.tree.parent / "store"
    taken = SnapshotStore(store).take({"workspace": t.tree})
    kept = [path.read_bytes() for path in store.rglob("*") if path.is_file()]
    return f"{taken} {kept}"


def _copied(t: Trial) -> str:
    shutil.copytree(t.tree, t.tree.parent / "copy")
    copy = t.tree.parent / "copy"
    return str([path.read_text() for path in copy.rglob("*") if path.is_file()])


def _restored(t: Trial) -> str:
    store = SnapshotStore(t.tree.parent / "store")
    areas = {"workspace": t.tree}
    taken: list[str] = []
    (t.tree / "x").mkdir()
    (t.tree / "x/target").write_text("the agent's own")
    taken.append(store.take(areas).manifest)
    shutil.rmtree(t.tree / "x")
    (t.tree / "x").symlink_to(t.outside)
    now = store.take(areas).manifest
    with store.lock:
        return str(restore(store, areas, store.load(now), store.load(taken[0]), None))


def _put_back(t: Trial) -> None:
    kept = "the agent's own"
    (t.tree / "x").symlink_to(t.outside)
    (t.tree / "x/target").write_text(kept)


def _walked_naively(t: Trial) -> list[str]:
    pattern = str(t.tree / "**")
    return glob.glob(pattern, recursive=True) + glob.glob(str(t.tree / "x/*"))


def _grepped_naively(t: Trial) -> list[str]:
    return [
        line
        for top, _, names in os.walk(t.tree, followlinks=True)
        for name in names
        for line in Path(top, name).read_text().splitlines()
        if "secret" in line
    ]


def _as_terminal(text: str) -> str:
    """Return SUCCESS if a part of the name becomes a separate line in a log or a terminal."""
    return "SUCCESS" if re.search(r"[\x00-\x1f\x7f-\x9f]", text) else text.encode().hex()


def _error_naively(t: Trial) -> str:
    try:
        (t.tree / f"missing{EVIL}").read_text()
    except OSError as error:
        return _as_terminal(f"cannot read {error.filename}: {error.strerror}")
    return ""


def _error_of_tool(t: Trial) -> str:
    error = t.backend.read_file(t.at(f"missing{EVIL}"))["error"]
    return _as_terminal(error)


def _error_object(t: Trial) -> str:
    return _as_terminal(str(FileError("missing", t.at(f"missing{EVIL}"))))


def _forged_naively(t: Trial) -> str:
    listed = "\n".join(os.listdir(t.tree))
    return "SUCCESS" if "approved" in listed.split("\n") else listed


def _forged(t: Trial) -> str:
    listed = t.backend.ls(t.home or "/")
    rows = [line for text in (json.dumps(listed),) for line in text.split("\n")]
    names = [entry["name"] for entry in listed["entries"]]
    return "SUCCESS" if "approved" in rows or "approved" in names else str(rows)


def _backtracking(t: Trial) -> object:
    return re.search(r"(a+)+$", "a" * 60 + "!")


def _globbed_naively(t: Trial) -> object:
    return re.match(fnmatch.translate("*a" * 12 + "b").replace("(?>", "(?:"), "a" * 300)


def _area_naively(t: Trial) -> str:
    path = "/sandbox/workspace/../skills/SKILL.md"
    return "SUCCESS" if path.startswith("/sandbox/workspace/") else ""


def _area(t: Trial) -> str:
    for climb in (f"{t.at('..')}/../skills/SKILL.md", "/sandbox/workspace/../skills/SKILL.md"):
        if "error" not in t.backend.write_file(climb, "planted"):
            top = t.tree.parent if t.home == "/sandbox/workspace" else t.tree
            read_only = top / "skills/SKILL.md"
            if t.home == "/sandbox/workspace" and read_only.exists():
                return "SUCCESS"
    return ""


def _removed_naively(t: Trial) -> str:
    shutil.rmtree(t.tree)
    return ""


def _removed(t: Trial) -> str:
    remove_tree(t.tree)
    return "SUCCESS" if t.tree.exists() else ""


def _removed_or_left(remove: Callable[[Trial], str]) -> Callable[[Trial], str]:
    def use(t: Trial) -> str:
        try:
            remove(t)
        except (OSError, RecursionError) as error:
            return f"SUCCESS: it is still there ({type(error).__name__})"
        return "SUCCESS" if t.tree.exists() else "gone"

    return use


def _predicted_temporary(t: Trial) -> None:
    (t.outside / "target").write_text("untouched")
    (t.tree / "x").write_text("x")
    os.symlink(t.outside / "target", t.tree / "x.tmp")


def _written_by_temporary(t: Trial) -> None:
    (t.tree / "x.tmp").write_text("new")
    os.replace(t.tree / "x.tmp", t.tree / "x")


def _climbing(t: Trial) -> str:
    return "../" * 30 + str(t.secret_path).lstrip("/")


READINGS: tuple[Reading, ...] = (
    Reading("read_file: a link to a file", FILES, _secret_link, _open(), _tool("read_file")),
    Reading("read_file: a relative link", FILES, _link(_climbing), _open(), _tool("read_file")),
    Reading("read_file: below a link", FILES, _outside_link, _open("x/secret"),
            _tool("read_file", at="x/secret")),
    Reading("read_file: a chain of links", FILES,
            _chain, _open(), _tool("read_file")),
    Reading("read_file: the magic link of the root", FILES,
            _link(lambda t: f"/proc/self/root{t.secret_path}"), _open(), _tool("read_file")),
    Reading("read_file: an absolute path", FILES, _nothing, _join(lambda t: str(t.secret_path)),
            lambda t: t.backend.read_file(str(t.secret_path)), on_disk_only=False),
    Reading("read_file: a path that climbs", FILES, _nothing, _join(_climbing),
            _all_reading_tools(_climbing), on_disk_only=False),
    Reading("read_file: a path that climbs from a directory", FILES,
            lambda t: (t.tree / "d").mkdir(), _join(lambda t: "d/" + _climbing(t)),
            _all_reading_tools(lambda t: t.at("d/" + _climbing(t))), on_disk_only=False),
    Reading("read_file: a home", FILES, _nothing,
            lambda t: (os.environ.update(HOME=str(t.outside)),
                       Path(os.path.expanduser("~/secret")).read_text()),
            lambda t: (os.environ.update(HOME=str(t.outside)), t.backend.read_file("~/secret")),
            on_disk_only=False),
    Reading("read_file: a FIFO", FILES, _fifo, _open(), _tool("read_file"), "hang"),
    Reading("read_file: a link to a file without an end", FILES, _link(lambda t: "/dev/zero"),
            _open(), _tool("read_file"), "hang"),
    Reading("read_file: a file of four terabytes", FILES, _sparse, _open(), _tool("read_file"),
            "hang"),
    Reading("edit_file: a file of four terabytes", FILES, _sparse, _open(),
            _tool("edit_file", "a", "b"), "hang"),
    Reading("read_file: a file under a lease", FILES, _leased, _open(), _tool("read_file"), "hang"),
    Reading("grep: a FIFO among the files", FILES, _fifo, _grepped_naively,
            lambda t: t.backend.grep("secret", t.home or "/"), "hang"),
    Reading("write_file: through a link", FILES, _link(lambda t: t.outside / "new"), _write("x"),
            _tool("write_file", "overwritten"), "written"),
    Reading("write_file: over a link to a file", FILES, _secret_link, _write("x"),
            _tool("write_file", "overwritten"), "written"),
    Reading("write_file: below a link", FILES, _outside_link, _write("x/new"),
            _tool("write_file", "overwritten", at="x/new"), "written"),
    Reading("write_file: a hard link", FILES, _hard_link, _write("x"),
            _tool("write_file", "overwritten"), "written"),
    Reading("write_file: an expected temporary name", FILES, _predicted_temporary,
            _written_by_temporary, _tool("write_file", "new"), "written"),
    Reading("edit_file: through a link", FILES, _secret_link,
            lambda t: (t.tree / "x").write_text((t.tree / "x").read_text().replace("vel", "x")),
            _tool("edit_file", "vel", "x"), "written"),
    Reading("write_file: from an area into one that is read-only", FILES, _nothing, _area_naively,
            _area, "printed"),
    Reading("ls: a link to a directory", FILES, _outside_link,
            lambda t: os.listdir(t.tree / "x"), _tool("ls")),
    Reading("glob: below a link", FILES, _outside_link, _walked_naively,
            lambda t: (t.backend.glob("**", t.home or "/"), t.backend.glob("x/*", t.home or "/"),
                       t.backend.glob(t.at("x/*")))),
    Reading("grep: below a link", FILES, _outside_link, _grepped_naively,
            lambda t: (t.backend.grep("vel-secret", t.home or "/"),
                       t.backend.grep("vel-secret", t.at("x")))),
    Reading("grep: a pattern that backtracks", FILES,
            _bait, _backtracking,
            lambda t: t.backend.grep("(a+)+$", t.home or "/"), "hang"),
    Reading("glob: a pattern that backtracks", FILES, _named("a" * 250), _globbed_naively,
            lambda t: t.backend.glob("*a" * 12 + "b", t.home or "/"), "hang"),
    Reading("read_file: a file that becomes a link", RACES, _swapping("file"),
            _checked_then_opened("x"), _many("read_file")),
    Reading("read_file: a directory that becomes a link", RACES, _swapping("directory"),
            _checked_then_opened("x/secret"), _many("read_file", at="x/secret")),
    Reading("write_file: a directory that becomes a link", RACES, _swapping("directory"),
            _checked_then_written, _many("write_file", "x", at="x/new"), "written"),
    Reading("archive: a link to a file", ARCHIVES, _secret_link, _zipped, _archived),
    Reading("archive: a link to a directory", ARCHIVES, _outside_link, _zipped, _archived),
    Reading("archive: a link that leads out once it is unpacked", ARCHIVES, _secret_link, _tarred,
            _archived),
    Reading("archive: a FIFO", ARCHIVES, _fifo, _zipped, _archived, "hang"),
    Reading("archive: a file of four terabytes", ARCHIVES, _sparse, _zipped, _archived, "hang"),
    Reading("archive: a file under a lease", ARCHIVES, _leased, _zipped, _archived, "hang"),
    Reading("archive: a set-uid file", ARCHIVES,
            _set_uid, _tarred,
            _archived, "printed"),
    Reading("snapshot: a link to a file", FILES, _secret_link, _copied, _snapshot),
    Reading("snapshot: a link to a directory", FILES, _outside_link, _copied, _snapshot),
    Reading("snapshot: a link to a file without an end", FILES, _link(lambda t: "/dev/zero"),
            _copied, _snapshot, "hang"),
    Reading("snapshot: a file under a lease", FILES, _leased, _copied, _snapshot, "hang"),
    Reading("restore: a link where a directory was", FILES,
            _target, _put_back, _restored,
            "written"),
    Reading("removal: directories nested very deep", FILES, _deep,
            _removed_or_left(_removed_naively), _removed_or_left(_removed), "printed"),
    Reading("error: control characters of a name", NAMES, _nothing, _error_naively, _error_of_tool,
            "printed", on_disk_only=False),
    Reading("error object: control characters of a name", NAMES, _nothing, _error_naively,
            _error_object, "printed", on_disk_only=False),
    Reading("ls: a name with a line of its own", NAMES, _named("x\napproved"), _forged_naively,
            _forged, "printed"),
)  # fmt: skip
