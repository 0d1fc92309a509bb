"""The checks of operations for `vel doctor`, and its support bundle."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.operations.service.support_bundle import write_bundle
from agents.features.operations.starting import refusal
from agents.kernel.findings import Finding, Level, WriteBundle


def check_moved() -> Iterator[Finding]:
    """Check that the database was not moved to another one."""
    if reason := refusal():
        yield Finding("moved database", Level.BROKEN, reason)


DATABASE_CHECKS = (check_moved,)
BUNDLES: tuple[WriteBundle, ...] = (write_bundle,)
