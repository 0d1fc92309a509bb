"""Whether removed features have left tables in the database."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.removal import PREFIX, leftovers
from velproject.doctor.findings import Finding, Level


def check_features() -> Iterator[Finding]:
    """No feature has left its tables behind."""
    for label in leftovers():
        name = label.removeprefix(PREFIX)
        yield Finding(
            "features",
            Level.BROKEN,
            f"the database has tables of the feature {label}, which is not installed: deleting "
            "threads or users can fail",
            f"Install it again, run `vel features remove {name}`, and remove it after that.",
        )
