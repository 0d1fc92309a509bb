"""Skills: packages of instructions that teach agents."""

from skills_app.cli import (  # noqa: F401  # they add commands to the group
    review,
    search,
    transfer,
    validate,
)
from skills_app.cli.listing import skills

COMMANDS = (skills,)
