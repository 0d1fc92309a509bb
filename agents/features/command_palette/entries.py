"""The entries of the palette for a user and some words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext

from agents.doors.web.navigation import navigation
from agents.hidden_text import visible
from agents.selectors.history import HistoryFilter, history_page
from agents.selectors.visible import agents_for

MOST_AGENTS = 20
MOST_CONVERSATIONS = 12


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A link. `group` is its heading: Go to, Start a run, or Conversations."""

    group: str
    label: str
    url: str


def entries_for(user: User, words: str) -> list[PaletteEntry]:
    """Return the entries for a search: pages, agents, then conversations.

    A page or an agent must contain each word in its heading or label, a conversation the whole text
    `words` in a message or its title. Without words: all pages, agents and the latest
    conversations. At most `MOST_AGENTS` agents (by name) and `MOST_CONVERSATIONS` conversations are
    returned.
    """
    wanted = words.casefold().split()

    def matches(entry: PaletteEntry) -> bool:
        text = f"{entry.group} {entry.label}".casefold()
        return all(word in text for word in wanted)

    agents = islice(filter(matches, _agents(user)), MOST_AGENTS)
    return [*filter(matches, _pages(user)), *agents, *_conversations(user, words)]


def _pages(user: User) -> Iterator[PaletteEntry]:
    for place in ("bar", "menu"):
        for link in navigation(place, user):
            yield PaletteEntry(gettext("Go to"), str(link.label), reverse(link.view))
    if user.is_staff:
        yield PaletteEntry(gettext("Go to"), gettext("Admin"), reverse("admin:index"))


def _agents(user: User) -> Iterator[PaletteEntry]:
    for slug, name in agents_for(user).order_by("name").values_list("slug", "name"):
        url = f"{reverse('web:home')}?{urlencode({'agent': slug})}#new"
        yield PaletteEntry(gettext("Start a run"), visible(name), url)


def _conversations(user: User, words: str) -> Iterator[PaletteEntry]:
    threads = set()
    for run in history_page(user, HistoryFilter(words=words)).runs:
        if run.thread_id in threads:
            continue
        threads.add(run.thread_id)
        if len(threads) > MOST_CONVERSATIONS:
            return
        title = visible(run.thread.title) or gettext("(no title)")
        yield PaletteEntry(gettext("Conversations"), title, reverse("web:run", args=[run.pk]))
