"""The named scripts of the offline model, one file each."""

from __future__ import annotations

from agents.providers.scripts import demo, echo
from agents.providers.scripts.base import ScriptFunction

SCRIPTS: dict[str, ScriptFunction] = {"demo": demo.script, "echo": echo.script}
