"""Directories like those of users: real git checkouts of an ordinary account."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sandbox.account import Account, drop_to
from tests.sandbox.places import account

IDENTITY = {
    "GIT_AUTHOR_NAME": "user",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_COMMITTER_NAME": "user",
    "GIT_COMMITTER_EMAIL": "user@example.org",
}


def as_user(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell command outside the sandbox, as the owner of the directory."""
    status = directory.stat()
    prefix = drop_to(Account(status.st_uid, status.st_gid)) if os.geteuid() == 0 else []
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    return subprocess.run(
        [*prefix, "bash", "-c", command],
        cwd=directory,
        env=environment | IDENTITY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def make_directory(place: Path, name: str = "project") -> Path:
    """Create an empty directory of an ordinary account."""
    directory = place / name
    directory.mkdir(mode=0o755)
    uid = account()
    if uid is not None:
        os.chown(directory, uid, uid)
    return directory


def make_checkout(place: Path, name: str = "project", more: str = "true") -> Path:
    """Create a git checkout with one commit; `more` is a shell command that runs in it first."""
    directory = make_directory(place, name)
    done = as_user(
        "git init -q -b main . && git config user.name user && git config user.email u@example.org "
        f"&& echo one > source.txt && {more} && git add -A && git commit -qm one",
        directory,
    )
    assert done.returncode == 0, done.stderr
    return directory


def contents(directory: Path) -> dict[str, str]:
    """Return the text, the mode or the target of everything below the directory."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = f"{path.stat().st_mode:o} {path.read_bytes()!r}"
        else:
            found[name] = f"{path.stat().st_mode:o}"
    return found
