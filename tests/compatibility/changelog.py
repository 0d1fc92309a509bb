"""The breaking changes that CHANGELOG.md announces."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.compatibility.schemas import Break

HEADING = "Breaking changes"


def announced(changelog: str, last_release: str) -> set[str]:
    """Return the subjects in backticks under "Breaking changes" since the last release.

    Args:
        changelog: The text of CHANGELOG.md.
        last_release: The version of the baseline. Its own section counts while it is unreleased.
    """
    found: set[str] = set()
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        if f"[{last_release}]" in title and "unreleased" not in title.lower():
            break
        for part in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
            name, _, text = part.partition("\n")
            if name.strip() == HEADING:
                found |= set(re.findall(r"`([^`]+)`", text))
        if f"[{last_release}]" in title:
            break
    return found


def unannounced(breaks: Iterable[Break], changelog: str, last_release: str) -> list[str]:
    """Return the breaks that CHANGELOG.md does not name."""
    known = announced(changelog, last_release)
    return [str(one) for one in breaks if one.subject not in known]
