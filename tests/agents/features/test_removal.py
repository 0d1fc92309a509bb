"""Features can be removed: without their folders and lines in the settings, Vel works."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, count, permutations
from pathlib import Path
from random import Random

import pytest

from agents.features import FEATURES
from agents.kernel.features import features
from tests.sandbox.places import reachable_directory
from tests.support.migrated import copy_sqlite

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "vel",
    "velproject",
    "agents",
    "skills_app",
    "memory",
    "text_scanner",
    "language_model",
    "sandbox",
    "templates",
)
LIST = Path("agents/features/__init__.py")
USE = Path(__file__).with_name("use_copy.py")
RUNS = Path(__file__).with_name("use_removed_features.py")
OPTIONAL = ("skills_app/memory_folders.py",)
"""Modules that only another feature imports, if it is installed."""
STAYS = "approvals"
"""The gate of all runs: no worker starts without it (`tests/agents/engine/test_gate.py`)."""


def path_of(name: str) -> str:
    return next(path for path in FEATURES if path.rpartition(".")[2] == name)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, from which each test removes features and puts them back."""
    place = tmp_path_factory.mktemp("project")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, place / name)  # keeps times, so that .pyc files stay valid
    shutil.copy2(ROOT / "manage.py", place)
    return place


@contextmanager
def without(project: Path, names: Sequence[str]) -> Iterator[None]:
    """Remove these features from the copy for as long as this lasts."""
    complete = text = (project / LIST).read_text()
    aside = project.with_name(f"{project.name}-removed")
    aside.mkdir()
    for name in names:
        path = path_of(name)
        line = f'    "{path}",\n'
        assert line in text
        text = text.replace(line, "")
        (project / path.replace(".", "/")).rename(aside / name)
    try:
        write_list(project, text)
        yield
    finally:
        write_list(project, complete)
        for name in names:
            (aside / name).rename(project / path_of(name).replace(".", "/"))
        aside.rmdir()


def write_list(project: Path, text: str) -> None:
    (project / LIST).write_text(text)
    # Python takes an old .pyc file for valid if times and sizes are the same.
    for compiled in (project / LIST.parent / "__pycache__").glob(f"{LIST.stem}.*"):
        compiled.unlink()


def required_features() -> dict[str, set[str]]:
    """Return the name of each feature with those of the features that it requires."""
    names = {config.label: config.name.rpartition(".")[2] for config in features()}
    return {
        names[config.label]: {names[label] for label in config.requires if label in names}
        for config in features()
    }


def removable_features() -> dict[str, set[str]]:
    """Return the features that Vel works without, as `required_features`."""
    return {name: needed for name, needed in required_features().items() if name != STAYS}


def halves() -> list[list[str]]:
    """Return two groups of features to remove together, so that each is removed once."""
    required = removable_features()
    connected: list[set[str]] = []
    for name in required:
        group = {name} | required[name]
        for other in [other for other in connected if other & group]:
            connected.remove(other)
            group |= other
        connected.append(group)
    return [
        [name for name in required if any(name in group for group in connected[at::2])]
        for at in range(2)
    ]


def removals() -> list[list[str]]:
    """Return groups of features to remove together, few instead of one for each feature.

    Of any two features each is removed in some group in which the other stays, unless the other
    requires it. So a feature that uses another one without requiring it is found.
    """
    required = removable_features()
    apart = [
        (removed, other)
        for removed, other in permutations(required, 2)
        if other not in _with_dependents({removed}, required)
    ]
    choices = Random(0)
    for number in count(2):
        subsets = [set(subset) for subset in combinations(range(number), number // 2)]
        for _ in range(1000 if len(subsets) >= len(required) else 0):
            where = dict(zip(required, choices.sample(subsets, len(required)), strict=True))
            for name in filter(required.get, required):
                where[name] = {choices.randrange(number)}
            for name in required:
                for dependent in _with_dependents({name}, required) - {name}:
                    where[dependent] = where[dependent] | where[name]
            if all(where[removed] - where[other] for removed, other in apart):
                return [[name for name in required if at in where[name]] for at in range(number)]
    raise AssertionError


def _with_dependents(group: set[str], required: Mapping[str, set[str]]) -> set[str]:
    """Add the features that require one of the group."""
    while more := {name for name, needed in required.items() if needed & group} - group:
        group = group | more
    return group


def imported_features(name: str) -> set[str]:
    """Return the other features whose modules a feature imports anywhere."""
    directory = ROOT / path_of(name).replace(".", "/")
    imported = {
        module
        for file in directory.rglob("*.py")
        if file.relative_to(ROOT).as_posix() not in OPTIONAL
        for node in ast.walk(ast.parse(file.read_text()))
        for module in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    paths = {other: path_of(other) for other in required_features() if other != name}
    return {
        other
        for other, path in paths.items()
        if any(f"{module}.".startswith(f"{path}.") for module in imported)
    }


def test_a_feature_imports_only_the_features_that_it_requires() -> None:
    imported = {name: imported_features(name) for name in required_features()}
    assert imported["slack"] == {"credentials"}
    for name, required in required_features().items():
        assert imported[name] <= required, name


@pytest.mark.parametrize(
    "names",
    [*halves(), *(pytest.param(names, marks=pytest.mark.storm) for names in removals())],
    ids="-".join,
)
def test_vel_works_without_features(project: Path, names: Sequence[str]) -> None:
    with reachable_directory() as data, without(project, names):
        done = use(project, data, names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "No changes detected" in done.stdout
    for path in ("/healthz", "/", "/approvals/", "/agents/new/", "/admin/agents/agent/add/"):
        assert f"200 GET {path}\n" in done.stdout


def test_runs_that_need_a_removed_feature_fail(project: Path) -> None:
    """One has a limit of costs, and the other one is a run of an agent with guardrails."""
    names = ["inbound_webhooks", "budgets", "guardrails"]
    with reachable_directory() as data, without(project, names):
        copy_sqlite(data / "vel.sqlite3")  # with the tables of the removed features
        done = use(project, data, names, script=RUNS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--max-cost: the feature with this option is not installed" in done.stderr
    assert "failed feature_missing 0 This run needs middleware that is not installed" in done.stdout


def use(
    place: Path, data: Path, names: Sequence[str], script: Path = USE
) -> subprocess.CompletedProcess[str]:
    """Run a script, by default `use_copy`, in the project at `place`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        "PYTHONPATH": str(place),
        "DJANGO_SETTINGS_MODULE": "velproject.settings",
        "VEL_DATA_DIR": str(data),
        "REMOVED": " ".join(map(path_of, names)),
    }
    return subprocess.run(
        [sys.executable, "-P", str(script)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
