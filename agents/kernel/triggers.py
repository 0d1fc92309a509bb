"""Triggers start runs without a person. Features list their kinds in `triggers.TRIGGERS`.

Two more lists are about the triggers of all features. `triggers.START_CHECKS` has functions that
get a due trigger, and raise `CannotStart`. `triggers.BEFORE_DELETION` has functions that get the id
of a trigger before it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.db.models import Model

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class TriggerKind:
    """A kind of trigger. A run has the id of its trigger as `Run.trigger`.

    `source` is the `Run.source` of its runs, and the name of a filter of lists of runs. `label` is
    the word for people, as in "begun by a schedule". `model` is a subclass of
    `agents.models.Trigger`. `page` is the URL name of the page of one trigger, which takes its id.
    """

    source: str
    label: str
    model: type[Model]
    page: str


@cache
def trigger_kinds() -> list[TriggerKind]:
    """Return the kinds of the installed features. A feature that is broken is left out."""
    return [kind for _, kind in collect("triggers", "TRIGGERS", skip_broken=True)]
