"""The `vel` command.

`commands` has a table of the commands; the file of a command is imported when the command is
called. It holds the options and the code. What the code needs of Django is imported once Django is
set up: see `late_imports`.
"""

SETTINGS = "velproject.settings"
SHORT_SETTINGS = "velproject.cli.settings"
"""Without what only a server needs."""
