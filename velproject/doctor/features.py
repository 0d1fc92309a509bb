"""Search for tables and options of removed features in the database."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.removal import PREFIX, leftovers
from agents.hidden_text import visible
from agents.kernel.options import without_known
from agents.models import Agent
from velproject.doctor.findings import Finding, Level


def check_features() -> Iterator[Finding]:
    """Check that no feature has left its tables or its options behind."""
    for label in leftovers():
        name = label.removeprefix(PREFIX)
        yield Finding(
            "features",
            Level.BROKEN,
            f"the database has tables of the feature {label}, which is not installed: deleting "
            "threads or users can fail",
            f"Install it again, run `vel features remove {name}`, and remove it after that.",
        )
    for agent in Agent.objects.exclude(definition={}).order_by("slug"):
        if unknown := without_known(agent.definition):
            yield Finding(
                "features",
                Level.NOTE,
                f"the agent {visible(agent.slug)} has options that no installed feature has: "
                f"{visible(', '.join(sorted(unknown)))}",
                "They are kept and have no effect. Install the feature again, or leave them.",
            )
