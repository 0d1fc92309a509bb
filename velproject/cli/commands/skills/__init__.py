"""Skills: packages of instructions that teach agents."""

from velproject.cli.commands.skills import (  # noqa: F401  # they add commands to the group
    review,
    search,
    transfer,
    validate,
)
from velproject.cli.commands.skills.listing import skills

COMMANDS = (skills,)
