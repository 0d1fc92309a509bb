"""Reasons for which a backup is not made, or not restored."""

from __future__ import annotations


class BackupRefused(Exception):
    """The operation was refused or has failed. The data of Vel is unchanged.

    The message suggests a solution.
    """


class EndUnknown(BackupRefused):
    """The connection was lost at the last step: the restore is complete, or can be undone."""
