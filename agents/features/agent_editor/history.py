"""The versions of an agent, each with its changes and the note of its author."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator

from agents.doors.admin.text import FieldChange, changes
from agents.hidden_text import visible
from agents.models import Agent, AgentVersion, AuditEntry
from agents.services.agent_definitions.definitions import version_of
from agents.spec import AgentSpec

VERSIONS_A_PAGE = 20
MOST_ENTRIES = 500


@dataclass(frozen=True)
class ShownVersion:
    """A version. The texts are safe to display."""

    number: int
    created_at: Any
    author: str
    note: str
    changes: list[FieldChange]
    restored: list[FieldChange]
    """The fields that a restore would change."""
    is_first: bool


def history_page(agent: Agent, number: str) -> tuple[Page[AgentVersion], list[ShownVersion]]:
    """Return one page of the versions, newest first."""
    rows = agent.versions.select_related("created_by").order_by("-number")
    page = Paginator(rows, VERSIONS_A_PAGE).get_page(number)
    versions = list(page.object_list)
    published = rows.filter(number=agent.version).first()
    least = versions[-1].number if versions else 0
    before = rows.filter(number__lt=least).first()
    notes = _notes(agent)
    shown = [
        _shown(version, older, published, notes)
        for version, older in zip(versions, [*versions[1:], before], strict=True)
    ]
    return page, shown


def _shown(
    version: AgentVersion,
    older: AgentVersion | None,
    published: AgentVersion | None,
    notes: Mapping[int, str],
) -> ShownVersion:
    author = version.created_by.get_username() if version.created_by else ""
    return ShownVersion(
        number=version.number,
        created_at=version.created_at,
        author=visible(author),
        note=visible(notes.get(version.number, "")),
        changes=between(older, version) if older else [],
        restored=between(published, version) if published else [],
        is_first=older is None,
    )


def between(before: AgentVersion, after: AgentVersion) -> list[FieldChange]:
    """Return the fields that differ between two versions. The texts are safe to display."""
    return changes(AgentSpec.completed(before.spec), AgentSpec.completed(after.spec))


def changes_since(agent: Agent, number: int) -> list[FieldChange]:
    """Return the changes of the definition since a version. Raises `NotFound`."""
    return between(version_of(agent.pk, number), version_of(agent.pk, agent.version))


def _notes(agent: Agent) -> dict[int, str]:
    """Return the notes of the audit log, by the number of the version."""
    entries = AuditEntry.objects.filter(kind="agent", target_id=agent.pk).exclude(note="")
    found: dict[int, str] = {}
    for changed, note in entries.order_by("-id").values_list("changes", "note")[:MOST_ENTRIES]:
        number = (changed or {}).get("version", [None, None])[1]
        if isinstance(number, int):
            found.setdefault(number, note)
    return found
