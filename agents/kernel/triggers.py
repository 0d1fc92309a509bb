"""Triggers start runs without a person. Features list their kinds in `triggers.TRIGGERS`.

Two more lists concern the triggers of all features. The functions in `triggers.START_CHECKS`
receive a due trigger, and raise `CannotStart` to prevent the start. The functions in
`triggers.BEFORE_DELETION` receive the id of a trigger before it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.db.models import Model
from django.utils.functional import Promise

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class TriggerKind:
    """A kind of trigger. A run has the id of its trigger as `Run.trigger`.

    `source` is the `Run.source` of its runs, and the name of a filter in lists of runs. `label` is
    the word for people, as in "begun by a schedule". `model` is a subclass of
    `agents.models.Trigger`. `page` is the URL name of the page of one trigger. The URL takes the
    trigger's id.
    """

    source: str
    label: str | Promise
    model: type[Model]
    page: str


@cache
def trigger_kinds() -> list[TriggerKind]:
    """Return the kinds of triggers of the installed features, except broken features."""
    return [kind for _, kind in collect("triggers", "TRIGGERS", skip_broken=True)]
