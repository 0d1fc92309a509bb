"""Skills: packages of instructions that teach agents."""

from skills_app.cli import (  # noqa: F401  # they add commands to the group
    review,
    search,
    transfer,
    validate,
)
from skills_app.cli.listing import skills
from skills_app.cli.slash import SLASH_COMMANDS

COMMANDS = (skills,)

__all__ = ["COMMANDS", "SLASH_COMMANDS"]
