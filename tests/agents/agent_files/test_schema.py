"""The JSON schema of agent files."""

from __future__ import annotations

from agents.agent_files.shape import agent_schema


def test_every_field_has_a_description() -> None:
    schema = agent_schema()
    parts = {"": schema, **schema["$defs"]}
    missing = [
        f"{part}.{name}"
        for part, found in parts.items()
        for name, field in found.get("properties", {}).items()
        if not field.get("description")
    ]
    assert not missing
