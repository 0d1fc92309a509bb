"""Every attempt of the tables works without the guard, and fails with it.

The tables run once for each account, in a separate process (`runner`). The tests then read the
result of each attempt.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import re2

from sandbox.uids import uid_for
from tests.attacks.table import ATTACKS, bombs, host, own_directory, unapproved
from tests.support.hang import HANG

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.timeout(6 * HANG),
    pytest.mark.xdist_group("attacks"),  # one process runs them all
]

ROOT = Path(__file__).resolve().parents[2]
MODES = ("root", "user") if os.geteuid() == 0 else ("user",)
MODE_PARAMETERS = [
    pytest.param(mode, marks=pytest.mark.root if mode == "root" else ()) for mode in MODES
]
ALL = [
    *(
        (attack.name, attack.kind)
        for attack in (*ATTACKS, *bombs.ATTACKS, *own_directory.ATTACKS, *unapproved.ATTACKS)
    ),
    *((reading.name, reading.kind) for reading in host.READINGS),
]


@contextmanager
def _as_user() -> Iterator[tuple[list[str], Path]]:
    """Return the command that runs a module as an ordinary user, and its directory.

    An ordinary user may have no access to this project and its interpreter, in root's home. So the
    files of the runner are copied, and the system's Python runs it.
    """
    if os.geteuid() != 0:
        yield [sys.executable], ROOT
        return
    place = Path(tempfile.mkdtemp(prefix="vel-attacks-copy-", dir="/var/tmp"))
    try:
        ignore = shutil.ignore_patterns("__pycache__")
        for name in ("sandbox", "tests/attacks"):
            shutil.copytree(ROOT / name, place / name, ignore=ignore)
        (place / "tests/__init__.py").touch()
        # The only package that file tools need.
        for module in Path(re2.__file__).parent.parent.glob("*re2*"):
            if module.is_dir():
                shutil.copytree(module, place / module.name, ignore=ignore)
            else:
                shutil.copy(module, place)
        subprocess.run(["chmod", "-R", "a+rX,u+w", place], check=True)
        uid = uid_for(1600)
        drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        yield [*drop, "--inh-caps=-all", "/usr/bin/python3"], place
    finally:
        shutil.rmtree(place)


def _run(mode: str) -> dict[str, Any]:
    with ExitStack() as stack:
        python, place = [sys.executable], ROOT
        if mode == "user":
            python, place = stack.enter_context(_as_user())
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
        done = subprocess.run(
            [*python, "-B", "-m", "tests.attacks.runner"],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5 * HANG,
            check=False,
        )
    if done.returncode != 0:
        return {"error": done.stderr[-3000:]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@functools.cache
def results() -> dict[str, dict[str, Any]]:
    """Return the output of `runner` for each mode. The modes run concurrently: they mostly wait."""
    with ThreadPoolExecutor(len(MODES)) as pool:
        return dict(zip(MODES, pool.map(_run, MODES), strict=True))


def found_as(mode: str) -> dict[str, Any]:
    found = results()[mode]
    # Its packages are for another Python than that of the system.
    unfit = ("No module named", "SyntaxError", "ImportError: cannot import name")
    if any(sign in found.get("error", "") for sign in unfit):
        pytest.skip(f"needs a system Python that can run the tables: {found['error'][-200:]}")
    assert "error" not in found, found["error"]
    return found


@pytest.mark.parametrize("mode", MODE_PARAMETERS)
@pytest.mark.parametrize("name", [name for name, _ in ALL])
def test_an_attack(name: str, mode: str) -> None:
    outcome = dict(found_as(mode)["outcomes"][name])
    without = outcome.pop("without")
    for guard, came in outcome.items():
        assert not came["success"], f"it succeeds in {guard}: {came['output']}"
        assert "HANG" not in came["output"], f"it hangs in {guard}: {came['output']}"
        assert came["output"] != "no report", guard
    assert outcome
    if "ABSENT" in without["output"]:
        pytest.skip(
            f"needs a host on which the attack works without the guard: {without['output'].strip()}"
        )
    assert without["success"], f"it proves nothing, as it fails without the guard: {without}"


@pytest.mark.parametrize("mode", MODE_PARAMETERS)
def test_the_attacks_harmed_and_left_nothing(mode: str) -> None:
    assert found_as(mode)["harm"] == []


def test_the_tables_are_complete() -> None:
    names = [name for name, _ in ALL]
    assert len(names) == len(set(names))
    assert {kind for _, kind in ALL} == {
        "code that was not approved",
        "file escape",
        "/proc and /sys",
        "links and races",
        "sockets and network",
        "privileges and set-uid",
        "kernel surface",
        "signals and other threads",
        "processes that stay",
        "resource bombs",
        "host-side readers",
        "archives",
        "environment leaks",
        "terminal and log injection",
        "own directory",
    }
