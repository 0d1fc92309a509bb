"""The settings whose defaults have changed, for `vel upgrade --check`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangedDefault:
    """A default that differs from that of the release before.

    `version` is the first release with the new default, for example "0.2.0". `old` and `new` are
    texts for people. To keep the old behaviour, the operator sets `variable` to `old`.
    """

    version: str
    variable: str
    old: str
    new: str


CHANGED_DEFAULTS: tuple[ChangedDefault, ...] = ()
"""The newest first. A test compares the defaults with those of the last release."""
