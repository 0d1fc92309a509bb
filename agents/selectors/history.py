"""The runs of a person in pages, at a cost that is independent of their number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.events.append import dump
from agents.models import Agent, Message, Run, Thread
from agents.selectors.attention import own_runs
from agents.selectors.starters import of_starter
from agents.selectors.visible import Person

RUNS_A_PAGE = 30
LOOKED_THROUGH = 5_000
"""Maximum number of rows that one page of any list examines."""
SEARCHED_THROUGH = 500
"""The same for a search for words, which reads the messages of each run."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Filters of a person's runs; "" for any.

    `words` is a text in a message or title, `agent` a slug, and `starter` a kind of starter.
    """

    words: str = ""
    status: str = ""
    agent: str = ""
    starter: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.status or self.agent or self.starter)


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of runs. For the next page, pass `next_after`, which is "" on the last page.

    If the search stopped at its limit, `looked_back_to` is the time of the last run that it
    examined, else None.
    """

    runs: list[Run]
    next_after: str
    looked_back_to: datetime | None


def history_page(person: Person, wanted: HistoryFilter, after: str = "") -> HistoryPage:
    """Return a page, newest first, of runs older than the run `after`."""
    # Ids start with the time.
    runs = own_runs(person).order_by("-pk")
    if after:
        runs = runs.filter(pk__lt=after)
    last = _last_looked_at(runs, wanted) if wanted else None
    fitting = _narrowed(runs, wanted, "" if last is None else last.pk)
    found = list(fitting[: RUNS_A_PAGE + 1])
    if len(found) > RUNS_A_PAGE:
        found.pop()
        return HistoryPage(found, found[-1].pk, None)
    if last is None:
        return HistoryPage(found, "", None)
    return HistoryPage(found, last.pk, last.created_at)


def _last_looked_at(runs: QuerySet[Run], wanted: HistoryFilter) -> Run | None:
    """Return the last run to examine. None if there are few enough to examine all."""
    most = SEARCHED_THROUGH if wanted.words else LOOKED_THROUGH
    ends = runs.select_related(None).only("pk", "created_at")[most - 1 : most + 1]
    found = list(ends)
    return found[0] if len(found) == 2 else None


def _narrowed(runs: QuerySet[Run], wanted: HistoryFilter, oldest: str) -> QuerySet[Run]:
    if oldest:
        runs = runs.filter(pk__gte=oldest)
    if wanted.status:
        runs = runs.filter(status=wanted.status)
    if wanted.agent:
        runs = runs.filter(thread__agent__slug=wanted.agent)
    if wanted.starter:
        runs = runs.filter(of_starter(wanted.starter))
    if wanted.words:
        # Messages are stored as JSON: search for the words in this form.
        spelled = dump(wanted.words)[1:-1]
        looked_at = runs.order_by().values("pk")
        messages = Message.objects.filter(run__in=looked_at, content__icontains=spelled)
        in_title = Q(thread__title__icontains=wanted.words)
        runs = runs.filter(in_title | Q(pk__in=messages.order_by().values("run")))
    return runs


def agents_of_threads(person: Person) -> list[tuple[str, str]]:
    """Return (slug, name) of the agents that `person` has threads with, sorted by name."""
    talked_with = Thread.objects.filter(owner=person.pk, agent=OuterRef("pk"))
    agents = Agent.objects.filter(Exists(talked_with)).order_by("name")
    return list(agents.values_list("slug", "name"))
