"""Attacks on a user's own directory: made in a checkout, where the user's tools run afterwards."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox import create_sandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.workspace import prepare
from tests.attacks.attack import Attack
from tests.attacks.driver import PRELUDE
from tests.attacks.table.own_directory import ATTACKS, USER
from tests.attacks.world import World

PYTHON = "/usr/bin/python3"
LONGEST = 300.0

Outcome = dict[str, dict[str, object]]

_CHECKOUT = """
git init -q . && git config user.name user && git config user.email user@example.org
echo one > source.txt && mkdir -p packages/app && echo : > packages/app/.envrc
git add -A && git commit -qm one
"""


def run(world: World) -> dict[str, Outcome]:
    """Return `success` and `output` of each attempt by name, for "without" and each sandbox."""
    base = world.directory("checkouts", 0o755)
    template = world.directory("checkout", 0o755)
    _as_user(world, ["bash", "-c", _CHECKOUT], template)
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda attack: _outcome(world, base, template, attack), ATTACKS)
        return {attack.name: outcome for attack, outcome in zip(ATTACKS, found, strict=True)}


def _outcome(world: World, base: Path, template: Path, attack: Attack) -> Outcome:
    def plainly(checkout: Path, code: str) -> str:
        return _as_user(world, [PYTHON, "-c", code], checkout)

    def in_sandbox(checkout: Path, code: str) -> str:
        return str(
            create_sandbox(str(checkout), timeout=LONGEST).start([PYTHON, "-c", code]).wait()
        )

    def in_workspace(checkout: Path, code: str) -> str:
        thread = prepare(world.place / "threads", checkout.name, own_directory=checkout)
        box = BubblewrapSandbox(thread.policy(timeout=LONGEST))
        return str(box.start([PYTHON, "-c", code]).wait())

    ways: dict[str, Callable[[Path, str], str]] = {
        "without": plainly,
        "create_sandbox": in_sandbox,
        "workspace": in_workspace,
    }
    found: Outcome = {}
    for way, attempt in ways.items():
        slug = f"o-{secrets.token_hex(6)}"
        checkout = base / slug
        checkout.mkdir(mode=0o755)
        world.own(checkout)
        _as_user(world, ["cp", "-a", f"{template}/.", "."], checkout)
        mark = world.outside / slug
        values = f"slug = {slug!r}; mark = {str(mark)!r}\n"
        output = attempt(checkout, f"{PRELUDE}{values}{attack.source}")
        _as_user(world, ["bash", "-c", USER], checkout)
        found[way] = {"success": mark.exists(), "output": output[-400:]}
        mark.unlink(missing_ok=True)
    return found


def _as_user(world: World, command: list[str], place: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [*world.prefix, *command],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LONGEST,
        check=False,
    )
    return done.stdout + done.stderr
