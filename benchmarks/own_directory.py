"""The cost of protecting a user's own directory, for each command and for each run.

    python -m benchmarks.own_directory

Prints milliseconds (the fastest of several) with and without the guard.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sandbox import create_sandbox
from sandbox.account import Account
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.scan import take_inventory
from sandbox.uids import uid_for

TIMES = 25

DIRECTORIES = {
    "an empty directory": "true",
    "a git checkout": "git init -q .",
    "a checkout with .github, .vscode, .husky and .npmrc": "git init -q . && mkdir .github .vscode "
    ".husky && touch .github/a .vscode/a .husky/a .npmrc",
    "a checkout with 10 nested .npmrc": "git init -q . && for i in $(seq 10); do "
    "mkdir -p packages/$i && touch packages/$i/.npmrc; done",
    "a checkout with 100 nested .npmrc": "git init -q . && for i in $(seq 100); do "
    "mkdir -p packages/$i && touch packages/$i/.npmrc; done",
    "a checkout with 50,000 files, 40,000 of them packages": "git init -q . && for i in "
    "$(seq 100); do mkdir -p s/$i node_modules/$i; (cd s/$i; touch $(seq 100)); "
    "(cd node_modules/$i; touch $(seq 400)); done",
}


def _fastest(*functions: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each. They take turns, so that other work affects all of them."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(TIMES):
        for function, taken in zip(functions, times, strict=True):
            began = time.perf_counter()
            function()
            taken.append(time.perf_counter() - began)
    return [min(taken) * 1000 for taken in times]


def main() -> None:
    print(f"{'':60} {'mounts':>6} {'without':>8} {'with':>8} {'scan':>8}   (ms)")
    for name, make in DIRECTORIES.items():
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            os.chmod(place, 0o755)
            directory = Path(place) / "work"
            directory.mkdir()
            subprocess.run(["bash", "-c", make], cwd=directory, check=True)
            if os.geteuid() == 0:
                uid = str(uid_for(0))
                subprocess.run(["chown", "-R", f"{uid}:{uid}", str(directory)], check=True)
            box, bare = create_sandbox(str(directory)), create_sandbox(str(directory))
            guard, bare.guard = box.guard, None
            assert guard is not None
            status = directory.stat()
            arguments, _ = guard.prepare(Account(status.st_uid, status.st_gid))
            without, guarded, scan = _fastest(
                partial(bare.execute, "true"),
                partial(box.execute, "true"),
                partial(take_inventory, directory, FileRules()),
            )
            print(f"{name:60} {len(arguments) // 3:6} {without:8.1f} {guarded:8.1f} {scan:8.1f}")


if __name__ == "__main__":
    main()
