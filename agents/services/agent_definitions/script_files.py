"""Scripts in files: who may add agents is not therefore told which files the server has.

Workers refuse such a script too, whatever door it came through: this is so that people are told
when they type it. Programs of the machine's own user save what they like, and play it themselves.
"""

from __future__ import annotations

from agents.providers.base import ProviderError
from agents.providers.scripted import FILE_PREFIX, script_path
from agents.services.errors import InvalidRequest
from agents.settings import ScriptSettings


def check_script(model: str, *, of: str = "") -> None:
    """Raise `InvalidRequest` for the name of a file that workers may not play.

    `of` is the subagent's name. Nothing is looked at, so that the answer is the same for files that
    are there and that are not.
    """
    if not model.startswith(FILE_PREFIX):
        return
    try:
        script_path(model, ScriptSettings.now().SCRIPTS_DIR)
    except ProviderError as error:
        location = f"subagents: {of}: model" if of else "model"
        raise InvalidRequest(f"{location}: {error.message}", code="invalid_agent") from None
