"""The `vel` command: its entry point, and the commands of the project.

`commands` has a table of the commands. What commands share is in `agents.doors.cli`.
"""
