"""Sections that features add to the page of a thread in the admin (`admin.THREAD_SECTIONS`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.kernel.features import collect
from agents.models import Thread


@dataclass(frozen=True, slots=True)
class ThreadSection:
    """A section between the changed files and the runs."""

    template: str
    """Its context contains the result of `content` as `section`."""
    content: Callable[[Thread], Any]
    """Return an empty value for a thread without this section."""


def thread_sections(thread: Thread) -> list[dict[str, Any]]:
    """Return the template and the content of each section that the thread has."""
    found = [
        (section.template, section.content(thread))
        for _, section in collect("admin", "THREAD_SECTIONS", skip_broken=True)
    ]
    return [{"template": template, "content": content} for template, content in found if content]
