"""The files that are generated from definitions in the code."""

from __future__ import annotations

import json
from pathlib import Path

from agents.agent_files.shape import agent_schema
from agents.api.objects import OBJECTS
from agents.doors.rest.managed.coverage import rest_objects
from agents.events.event_docs import generated_files
from agents.kernel.settings import installed
from docs_tools import (
    agent_file_page,
    cli_page,
    permissions_page,
    rest_objects_page,
    settings_page,
)
from velproject.server_settings import ServerSettings

ROOT = Path(__file__).parents[1]
_PAGES = ROOT / "docs/reference"


def reference_files() -> dict[Path, str]:
    """Return the content of each generated file. Django must be set up."""
    settings, objects = _PAGES / "settings.md", _PAGES / "rest-objects.md"
    schema = agent_schema()
    return {
        **generated_files(ROOT),
        _PAGES / "agent.schema.json": json.dumps(schema, indent=2) + "\n",
        _PAGES / "agent-file.md": agent_file_page.page(schema),
        _PAGES / "cli.md": cli_page.page(),
        _PAGES / "permissions.md": permissions_page.page(),
        settings: settings_page.page(settings.read_text(), [ServerSettings, *installed()]),
        objects: rest_objects_page.page(objects.read_text(), rest_objects(OBJECTS)),
    }
