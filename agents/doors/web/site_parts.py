"""Scripts and style sheets that features add to all pages (`pages.SITE_PARTS`)."""

from __future__ import annotations

from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class SitePart:
    """A static JavaScript module and a style sheet, for pages of signed-in users."""

    script: str
    style: str = ""


def site_parts() -> list[SitePart]:
    return [part for _, part in collect("pages", "SITE_PARTS", skip_broken=True)]
