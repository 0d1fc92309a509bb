"""Scripts in files: the right to add agents does not reveal which files the server has.

Workers also refuse these scripts, at every door. This check reports it when the definition is
entered. Programs of the machine's own user can save any path, and play the script themselves.
"""

from __future__ import annotations

from agents.providers.base import ProviderError
from agents.providers.scripted import FILE_PREFIX, script_path
from agents.services.errors import InvalidRequest
from agents.settings import ScriptSettings


def check_script(model: str, *, of: str = "") -> None:
    """Raise `InvalidRequest` for the name of a file that workers may not play.

    `of` is the subagent's name. The file system is not read, so the answer does not show whether a
    file exists.
    """
    if not model.startswith(FILE_PREFIX):
        return
    try:
        script_path(model, ScriptSettings.now().SCRIPTS_DIR)
    except ProviderError as error:
        location = f"subagents: {of}: model" if of else "model"
        raise InvalidRequest(f"{location}: {error.message}", code="invalid_agent") from None
