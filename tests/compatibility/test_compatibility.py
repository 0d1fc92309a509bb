"""This version breaks no program of the last release without an entry in CHANGELOG.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.migrations.loader import MigrationLoader

from agents.features.operations.upgrades.changed_defaults import CHANGED_DEFAULTS
from agents.features.operations.upgrades.rolling import breaks_old_processes
from tests.compatibility import documents, python_api
from tests.compatibility.changelog import unannounced
from tests.compatibility.schemas import Break
from tests.compatibility.store import documents as current_documents
from tests.compatibility.store import stored

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
ADVICE = (
    "A program or a file that works with the last release would fail. Keep the old form beside the "
    "new one, or name each subject in backticks under `### Breaking changes` in CHANGELOG.md. See "
    "docs/reference/compatibility.md."
)


@pytest.fixture(scope="module")
def current() -> dict[str, Any]:
    return current_documents()


@pytest.mark.parametrize(
    ("name", "compare"),
    [
        ("openapi.json", documents.rest_api),
        ("events.schema.json", documents.events),
        ("agent.schema.json", documents.agent_file),
        ("python.json", python_api.compare),
    ],
)
def test_each_breaking_change_is_in_the_changelog(
    name: str, compare: Callable[[Any, Any], list[Break]], current: dict[str, Any]
) -> None:
    last_release = stored("openapi.json")["info"]["version"]
    breaks = compare(stored(name), current[name])
    assert unannounced(breaks, CHANGELOG.read_text(), last_release) == [], ADVICE


def test_each_changed_default_is_known_to_vel_upgrade(current: dict[str, Any]) -> None:
    before, now = stored("defaults.json"), current["defaults.json"]
    changed = {name for name in before.keys() & now.keys() if before[name] != now[name]}
    listed = {one.variable for one in CHANGED_DEFAULTS}
    assert changed - listed == set(), "Add it to CHANGED_DEFAULTS, which `vel upgrade` shows."


def test_processes_of_the_last_release_can_use_the_migrated_database() -> None:
    loader, known = MigrationLoader(None), set(stored("migrations.json"))
    breaks = [
        Break(f"{app}.{name}", operation)
        for app, name in loader.graph.nodes
        if f"{app}.{name}" not in known
        for operation in breaks_old_processes(
            loader.get_migration(app, name), loader.project_state((app, name), at_end=False)
        )
    ]
    last_release = stored("openapi.json")["info"]["version"]
    assert unannounced(breaks, CHANGELOG.read_text(), last_release) == [], ADVICE
