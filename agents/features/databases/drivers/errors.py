"""Errors of statements, with messages that may be shown to the agent."""

from __future__ import annotations

MYSQL_DRIVER_MISSING = "MySQL's driver is not installed: pip install 'vel[mysql]'."


class QueryFailed(Exception):
    """A statement without a result. The message has no secrets of the URL.

    `code` is a short name for events and programs.
    """

    def __init__(self, message: str, code: str = "database") -> None:
        super().__init__(message)
        self.code = code


class OutcomeUnknown(QueryFailed):
    """A statement that writes was to be committed, and it is unknown whether it was."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "outcome_unknown")
