"""Reasons for which a database is not moved."""

from __future__ import annotations


class CommitUnknown(Exception):
    """The connection was lost in the last step. Whether the target stored the copy is unknown."""


class MoveRefused(Exception):
    """The database was not moved, and nothing has changed. The message is for people.

    One message is different: if the connection was lost at the end and the target cannot be
    reached, the target has the whole copy or nothing, and the message says what to do.
    """


class NotEmpty(MoveRefused):
    """The target has rows in its tables. They may be the copy of an earlier move."""
