"""An installation with a place for its backups, and new places to restore them into."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from agents.features.operations.backups.manifest import canonical, key_id, signing_key
from tests.velproject.cli.commands.move.databases import WHOLE, Old
from tests.velproject.command import DEADLINE, Vel

KEY = "not-a-secret-only-for-tests"


class Installation:
    """`vel` is the running installation; `repository` is where its backups go."""

    def __init__(self, old: Old, base: Path) -> None:
        self.old = old
        self.vel = old.vel
        self.base = base
        self.repository = base / "backups"

    def backup(self, *more: str, **environment: str) -> dict[str, Any]:
        """Make a backup and return what the command prints with --json."""
        done = self.vel(
            "backup", "create", "--to", str(self.repository), "--json", *more, **environment
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def verify(self, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.vel("backup", "verify", "--from", str(self.repository), *more, **environment)

    def new(self, name: str = "restored", **environment: str) -> Vel:
        """Return `vel` with an empty data directory, as on a new machine."""
        data = self.base / name
        data.mkdir(mode=0o711)
        data.chmod(0o711)
        return Vel(data, {"VEL_SCRIPTS_DIR": "/", **environment})

    def restore(self, vel: Vel, *more: str) -> subprocess.CompletedProcess[str]:
        return vel("restore", "latest", "--from", str(self.repository), *more)

    def restored(self, *more: str, **environment: str) -> Vel:
        """Restore the last backup into a new installation with the same key."""
        vel = self.new(**{"VEL_SECRET_KEY": KEY, **environment})
        done = self.restore(vel, *more)
        assert done.returncode == 0, done.stderr
        return vel

    @property
    def manifest(self) -> Path:
        """The manifest of the last backup."""
        return max((self.repository / "snapshots").iterdir())

    def change_manifest(self, change: Callable[[dict[str, Any]], object], key: str = "") -> None:
        """Change the last manifest, and sign it with `key`. Without a key, keep the signature."""
        body = json.loads(self.manifest.read_bytes())
        change(body)
        if key:
            del body["signature"]
            derived = signing_key(key)
            body["key_id"] = key_id(derived)
            signature = hmac.new(derived, canonical(body), hashlib.sha256).hexdigest()
            body["signature"] = signature
        self.manifest.write_bytes(canonical(body))


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the only line of a refusal."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    line = done.stderr.splitlines()[-1]
    assert "internal error" not in line
    return line


def state_of(directory: Path) -> dict[str, bytes | str | None]:
    """Return the contents of all files below a directory, and the names of all directories."""
    return dict(_entries(directory, directory))


def _entries(directory: Path, base: Path) -> Iterator[tuple[str, bytes | str | None]]:
    for path in sorted(directory.iterdir()):
        name = str(path.relative_to(base))
        if path.is_symlink():
            yield name, str(path.readlink())
        elif path.is_dir():
            yield name, None
            yield from _entries(path, base)
        elif not name.endswith((".lock", "-shm", "-wal")):
            yield name, path.read_bytes()


def whole_runs(file: Path) -> list[tuple[Any, ...]]:
    """Return the runs of a database, after a check that each has all events from 1 to n."""
    with closing(sqlite3.connect(file)) as database:
        found = database.execute(WHOLE).fetchall()
    assert all(count == last == seq and first == 1 for _, seq, count, first, last in found)
    return found


def refused(installation: Installation, *more: str) -> str:
    """Return the line of a refused restore into a new installation, which stays empty."""
    vel = installation.new(VEL_SECRET_KEY=KEY)
    line = line_of(installation.restore(vel, *more))
    assert state_of(vel.data) == {}
    return line


MEASURED = """
import re, sys
from velproject.cli.main import run_command_line
code = run_command_line(sys.argv[1:])
# Not ru_maxrss, which has that of the parent process.
print(re.search("VmHWM:.*?([0-9]+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
sys.exit(code)
"""
"""`vel`, with the most memory that it has used as the last line, in KiB."""


def measured(vel: Vel, *arguments: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a command. Return its result, and the most memory that it has used, in MiB."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", MEASURED, *arguments],
        capture_output=True,
        text=True,
        env=vel.env(),
        cwd=vel.data,
        timeout=DEADLINE,
        check=False,
    )
    *said, most = done.stderr.splitlines()
    done.stderr = "\n".join(said)
    return done, int(most) // 1024
