"""The `vel` command: its entry point, and the commands of the project.

`commands` has a table of the commands. Code that several commands use is in `agents.doors.cli`.
"""
