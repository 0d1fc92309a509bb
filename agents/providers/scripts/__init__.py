"""The named scripts of the offline model, one file each."""

from __future__ import annotations

from collections.abc import Collection

from agents.providers.scripts import builder, demo, echo
from agents.providers.scripts.base import ScriptFunction

SCRIPTS: dict[str, ScriptFunction] = {
    "builder": builder.script,
    "demo": demo.script,
    "echo": echo.script,
}


def script_name(model: str, tools: Collection[str]) -> str:
    """Return the name of a model's script. The default model's depends on its tools."""
    return "builder" if model == "demo" and "create_agent" in tools else model
