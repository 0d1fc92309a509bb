"""Why a statement has no result, in words that may be shown to the agent."""

from __future__ import annotations

MYSQL_DRIVER_MISSING = "MySQL's driver is not installed: pip install 'vel[mysql]'."


class QueryFailed(Exception):
    """The message never holds a URL's secrets. `code` is a short name for events and programs."""

    def __init__(self, message: str, code: str = "database") -> None:
        super().__init__(message)
        self.code = code


class OutcomeUnknown(QueryFailed):
    """A statement that writes was to be kept, and nobody can say whether it was."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "outcome_unknown")
