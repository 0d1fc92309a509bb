"""Reasons for which a backup is not made, or not restored."""

from __future__ import annotations


class BackupRefused(Exception):
    """Nothing has changed. The message is for people, and says what to do."""
