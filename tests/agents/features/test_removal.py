"""Features can be removed: without their folders and lines in the settings, Vel works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from random import Random

import pytest

from agents.features import FEATURES
from agents.kernel.features import features
from tests.sandbox.places import reachable_directory

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "vel",
    "velproject",
    "agents",
    "skills_app",
    "memory",
    "text_scanner",
    "sandbox",
    "templates",
)
LIST = Path("agents/features/__init__.py")
USE = Path(__file__).with_name("use_copy.py")
GUARDED = Path(__file__).with_name("use_guarded_agent.py")


def path_of(name: str) -> str:
    return next(path for path in FEATURES if path.rpartition(".")[2] == name)


def copy_without(place: Path, names: Sequence[str]) -> Path:
    """Copy the project to `place`, and remove these features from the copy."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, place / name)  # keeps times, so that .pyc files stay valid
    shutil.copy2(ROOT / "manage.py", place)
    text = (place / LIST).read_text()
    for name in names:
        path = path_of(name)
        line = f'    "{path}",\n'
        assert line in text
        text = text.replace(line, "")
        shutil.rmtree(place / path.replace(".", "/"))
    (place / LIST).write_text(text)
    return place


def removals() -> list[list[str]]:
    """Return groups of features to remove together, few instead of one for each feature.

    Of any two features each is removed in some group in which the other stays, unless the other
    requires it. So a feature that uses another one without requiring it is found.
    """
    names = {config.label: config.name.rpartition(".")[2] for config in features()}
    required = {
        names[config.label]: {names[label] for label in config.requires if label in names}
        for config in features()
    }
    missing = {
        (removed, other)
        for removed, other in permutations(required, 2)
        if other not in _with_dependents({removed}, required)
    }
    choices, half = Random(0), len(required) // 2
    groups = []
    while missing:
        candidates = [
            _with_dependents(set(choices.sample(list(required), half)), required)
            for _ in range(100)
        ]
        pairs = [set(product(group, required.keys() - group)) & missing for group in candidates]
        best = max(range(len(pairs)), key=lambda at: len(pairs[at]))
        missing -= pairs[best]
        groups.append(sorted(candidates[best]))
    return groups


def _with_dependents(group: set[str], required: Mapping[str, set[str]]) -> set[str]:
    """Add the features that require one of the group."""
    while more := {name for name, needed in required.items() if needed & group} - group:
        group = group | more
    return group


@pytest.mark.parametrize("names", removals(), ids="-".join)
def test_vel_works_without_features(tmp_path: Path, names: Sequence[str]) -> None:
    place = copy_without(tmp_path / "project", names)
    with reachable_directory() as data:
        done = use(place, data, names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "No changes detected" in done.stdout
    for path in ("/healthz", "/", "/approvals/", "/agents/new/", "/admin/agents/agent/add/"):
        assert f"200 GET {path}\n" in done.stdout


def test_a_run_with_a_limit_fails_without_budgets(tmp_path: Path) -> None:
    names = ["inbound_webhooks", "budgets"]
    place = copy_without(tmp_path / "project", names)
    with reachable_directory() as data:
        done = use(place, data, names, "--max-cost", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "needs middleware that is not installed here: budgets (for max_cost)" in done.stderr


def test_an_agent_with_guardrails_fails_without_the_feature(tmp_path: Path) -> None:
    names = ["guardrails"]
    place = copy_without(tmp_path / "project", names)
    with reachable_directory() as data:
        done = use(place, data, names, script=GUARDED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed feature_missing 0 This run needs middleware that is not installed" in done.stdout


def use(
    place: Path, data: Path, names: Sequence[str], *flags: str, script: Path = USE
) -> subprocess.CompletedProcess[str]:
    """Run a script, by default `use_copy`, in the project at `place`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        "PYTHONPATH": str(place),
        "DJANGO_SETTINGS_MODULE": "velproject.settings",
        "VEL_DATA_DIR": str(data),
        "REMOVED": " ".join(map(path_of, names)),
        "FLAGS": " ".join(flags),
    }
    return subprocess.run(
        [sys.executable, "-P", str(script)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
