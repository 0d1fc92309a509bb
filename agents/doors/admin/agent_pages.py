"""Pages that features add to an agent in the admin (`admin.AGENT_PAGES`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse

from agents.kernel.features import collect
from agents.models import Agent


@dataclass(frozen=True, slots=True)
class AgentPage:
    """A page about one agent at `AGENT/name/`, and the read-only field that links to it."""

    name: str
    """The page is `admin:agents_agent_NAME`."""
    view: Callable[[ModelAdmin[Agent], HttpRequest, str], HttpResponse]
    field: Callable[[Agent], str]
    fieldset: str
    """The heading in the form for the field. A new heading is placed after those of options."""


def agent_pages() -> list[AgentPage]:
    return [page for _, page in collect("admin", "AGENT_PAGES", skip_broken=True)]


def with_links(fieldsets: list[Any]) -> list[Any]:
    """Return `fieldsets` with the fields of the pages."""
    found = [(title, {**options}) for title, options in fieldsets]
    for page in agent_pages():
        options = next((options for title, options in found if title == page.fieldset), None)
        if options is None:
            options = {"fields": []}
            found.append((page.fieldset, options))
        options["fields"] = [*options["fields"], page.field]
    return found
