"""Commands that start, follow and control runs, and show their usage."""

from velproject.cli.commands.runs import one_run  # noqa: F401  # adds commands to the group
from velproject.cli.commands.runs.run import run
from velproject.cli.commands.runs.runs import runs
from velproject.cli.commands.runs.usage import usage

COMMANDS = (run, runs, usage)
