"""Run approved code with the files of `table.unapproved`, without the guard and with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from sandbox import BaseSandbox, create_sandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.workspace import prepare
from tests.attacks.table.unapproved import Planting
from tests.attacks.world import World

PYTHON = "/usr/bin/python3"
_SECONDS = 300.0
_COMPILE = """
import importlib.util, pathlib, py_compile, sys
source, module = map(pathlib.Path, sys.argv[1:])
py_compile.compile(str(source), importlib.util.cache_from_source(str(module)),
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""

Outcomes = dict[str, dict[str, dict[str, object]]]


def run(world: World, base: Path, attacks: Iterable[Planting]) -> Outcomes:
    """Return `success` and `output` of each attempt by name, for "without" and each sandbox."""
    return {attack.name: _outcomes(world, base, attack, n) for n, attack in enumerate(attacks)}


def _outcomes(
    world: World, base: Path, attack: Planting, number: int
) -> dict[str, dict[str, object]]:
    bare = world.directory(f"approved-{number}", 0o700)
    _plant(world, bare, attack)
    done = subprocess.run(
        [*world.prefix, PYTHON, "-c", f"exec({attack.code!r})"],
        env={"PYTHONPATH": str(bare), "HOME": "/nonexistent"},
        cwd=bare,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    found = {"without": _outcome(done.stdout + done.stderr)}
    directory = world.directory(f"approved-in-{number}", 0o700)
    _plant(world, directory, attack)
    found["create_sandbox"] = _approved(create_sandbox(str(directory)), attack)
    uid = world.account.uid if os.geteuid() == 0 else None
    workspace = prepare(base, f"approved-{number}", uid)
    _plant(world, workspace.directories["workspace"], attack)
    found["workspace"] = _approved(BubblewrapSandbox(workspace.policy()), attack)
    return found


def _approved(sandbox: BaseSandbox, attack: Planting) -> dict[str, object]:
    result = sandbox.start_python(attack.code, timeout=_SECONDS).wait()
    # The approved code must work, or this proves nothing.
    assert result.success, f"{attack.name}: {result.stderr}"
    return _outcome(result.stdout + result.stderr)


def _plant(world: World, directory: Path, attack: Planting) -> None:
    target = directory / attack.file
    target.parent.mkdir(parents=True, exist_ok=True)
    world.file(target, attack.content)
    if attack.compiled:
        other = world.file(directory / "compiled", attack.compiled)
        subprocess.run([PYTHON, "-c", _COMPILE, str(other), str(target)], check=True)
        other.unlink()
    for path in directory.rglob("*"):
        world.own(path)


def _outcome(output: str) -> dict[str, object]:
    return {"success": "SUCCESS" in output, "output": output[-300:]}
