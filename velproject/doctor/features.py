"""The doctor's checks for features: left-over tables and options, and missing toolboxes."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.removal import PREFIX, leftovers
from agents.hidden_text import visible
from agents.kernel.options import without_known
from agents.models import Agent
from agents.settings import DataSettings
from sandbox.toolboxes.find import toolbox_names
from velproject.doctor.findings import Finding, Level

SHOWN_AGENTS = 5


def check_features() -> Iterator[Finding]:
    """Check that no removed feature has left tables or options in the database."""
    for label in leftovers():
        name = label.removeprefix(PREFIX)
        yield Finding(
            "features",
            Level.BROKEN,
            f"the database has tables of the feature {label}, which is not installed: deleting "
            "threads or users can fail",
            f"Install it again, run `vel features remove {name}`, then uninstall it.",
        )
    for agent in Agent.objects.exclude(definition={}).order_by("slug"):
        if unknown := without_known(agent.definition):
            yield Finding(
                "features",
                Level.NOTE,
                f"the agent {visible(agent.slug)} has options of features that are not installed: "
                f"{visible(', '.join(sorted(unknown)))}",
                "They have no effect. Install the feature again, or ignore them.",
            )


def check_needed_toolboxes() -> Iterator[Finding]:
    """Check that this host has the toolboxes of all active agents: any of them may run here."""
    agents = Agent.objects.filter(is_active=True, sandbox=True).exclude(toolbox="")
    needed: dict[str, list[str]] = {}
    for name, slug in agents.order_by("toolbox", "slug").values_list("toolbox", "slug"):
        needed.setdefault(name, []).append(slug)
    here = toolbox_names(DataSettings.now().toolboxes)
    for name, slugs in needed.items():
        if name not in here:
            more = f" and {len(slugs) - SHOWN_AGENTS} more" if len(slugs) > SHOWN_AGENTS else ""
            yield Finding(
                f"toolbox {name}",
                Level.BROKEN,
                f"missing on this host: agents need it ({', '.join(slugs[:SHOWN_AGENTS])}{more})",
                f"vel toolbox create {name} PACKAGE… (`vel toolbox show {name}` on a host that has "
                "it lists its packages)",
            )
