"""Sandboxes with tight limits, for the tests that try to break them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.probe import usable_cgroups
from sandbox.policy import Limits
from tests.sandbox.places import processes_with, workspace_in
from tests.support.hang import HANG

MIB = 1024**2
MARKER = f"test-bomb-{os.getpid()}"

_of_earlier_tests: set[Path] = set()


def limited(
    place: Path,
    use_cgroups: bool,
    *,
    key: str = "thread",
    timeout: float = HANG,
    **limits: float | None,
) -> BubblewrapSandbox:
    policy = workspace_in(place, key).policy(timeout=timeout)
    return BubblewrapSandbox(
        replace(policy, limits=replace(Limits(), **limits)),  # type: ignore[arg-type]
        use_cgroups=use_cgroups,
    )


def own_groups() -> list[Path]:
    """Return the control groups of this process's commands, without those of earlier tests."""
    cgroups = usable_cgroups()
    parents = set(cgroups.parents.values()) if cgroups is not None else set()
    found = {path for parent in parents for path in parent.glob(f"vel-sandbox-*-{os.getpid()}-*-*")}
    return sorted(found - _of_earlier_tests)


def forget_groups() -> None:
    _of_earlier_tests.update(own_groups())


def assert_nothing_is_left() -> None:
    assert processes_with(MARKER) == []
    assert own_groups() == []
