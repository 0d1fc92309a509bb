"""Store the public documents of this version as those of the last release.

Run `make baseline` when you have published a release, and commit the result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django

BASELINE = Path(__file__).parent / "baseline"
_TEXTS = {"description", "summary", "example", "examples", "title"}
"""Keys that only people read. Without them the files are small, and a new text is no change."""
_NAMES = {"properties", "patternProperties", "$defs", "schemas", "paths", "headers", "parameters"}
"""Keys whose keys are names of things, for example a field `title`."""


def without_texts(value: Any, *, names: bool = False) -> Any:
    """Return a document without the texts for people. `names`: the keys of `value` are names."""
    if isinstance(value, list):
        return [without_texts(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_texts(one, names=not names and key in _NAMES)
        for key, one in value.items()
        if names or key not in _TEXTS
    }


def documents() -> dict[str, Any]:
    """Return the documents of this version by the name of their file. Django must be set up."""
    from django.db.migrations.loader import MigrationLoader

    import vel
    from agents.agent_files.shape import agent_schema
    from agents.api.schema_document import document_at
    from agents.events.event_docs import generated_files
    from docs_tools.reference import ROOT
    from tests.compatibility.python_api import describe

    catalogue = generated_files(ROOT)[ROOT / "docs/reference/events.schema.json"]
    return {
        "openapi.json": without_texts(document_at("/api/v1")),
        "events.schema.json": without_texts(json.loads(catalogue)),
        "agent.schema.json": without_texts(agent_schema()),
        "python.json": describe({name: getattr(vel, name) for name in vel.__all__}),
        "defaults.json": defaults(),
        "migrations.json": sorted(
            f"{app}.{name}" for app, name in MigrationLoader(None).graph.nodes
        ),
    }


def defaults() -> dict[str, str]:
    """Return the default of each variable, as the reference of settings shows it."""
    from agents.kernel.settings import installed, settings_of
    from docs_tools.settings_page import default
    from velproject.server_settings import ServerSettings

    return {
        variable: default(setting)
        for declared_in in (ServerSettings, *installed())
        for setting in settings_of(declared_in)
        for variable in setting.variables
    }


def stored(name: str) -> Any:
    """Return a document of the last release."""
    return json.loads((BASELINE / name).read_text())


def main() -> None:
    django.setup()
    for name, document in documents().items():
        text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True)
        (BASELINE / name).write_text(f"{text}\n")
        print(f"{BASELINE.name}/{name}: {len(text):,} characters", file=sys.stderr)


if __name__ == "__main__":
    main()
