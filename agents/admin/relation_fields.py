"""The relations of agents to rows of features, in the form of an agent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django import forms
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.admin.approval_fields import at_its_field
from agents.hidden_text import visible
from agents.kernel.relations import AgentRelation, relations
from agents.models import Agent
from agents.services.errors import InvalidRequest


class RowSelector(FilteredSelectMultiple):
    """The admin's two lists. Its script puts them first in their element, before a label."""

    def render(self, *arguments: Any, **more: Any) -> SafeString:
        return format_html(
            '<div class="related-widget-wrapper">{}</div>', super().render(*arguments, **more)
        )


class RelationField(forms.ModelMultipleChoiceField):
    """The rows that an agent can have. `checked` also asks the feature."""

    def __init__(self, relation: AgentRelation) -> None:
        super().__init__(
            queryset=relation.choices(Agent()).none(),
            required=False,
            widget=RowSelector(relation.title.lower(), is_stacked=False),
            help_text=relation.help_text,
        )
        self.relation = relation

    def begin(self, agent: Agent) -> list[Any]:
        """Offer the rows that `agent` can have. Return the keys of those that it has."""
        self.queryset = self.relation.choices(agent)
        return [row.pk for row in self.relation.rows(agent)]

    def checked(self, agent: Agent, rows: Any) -> list[Any]:
        """Return what was chosen for `agent`. Raises `ValidationError`."""
        chosen = list(rows)
        try:
            self.relation.check(agent, chosen)
        except InvalidRequest as error:
            raise ValidationError({self.relation.name: at_its_field(error.message)[1]}) from None
        return chosen


def relation_form_fields(may_change: Callable[[str], bool]) -> dict[str, forms.Field]:
    """Return the form fields of the relations that the person may change, by name."""
    return {
        relation.name: RelationField(relation)
        for relation in relations()
        if may_change(relation.name)
    }


def relation_fieldsets(may_change: Callable[[str], bool]) -> list[tuple[str, dict[str, Any]]]:
    """Return a fieldset for each relation. A person who may only look sees the names."""
    return [
        (relation.title, {"fields": [relation.name if may_change(relation.name) else shown]})
        for relation, shown in zip(relations(), relations_shown(), strict=True)
    ]


def relations_shown() -> list[Callable[[Agent], str]]:
    """Return a function for each relation that shows the rows of an agent. The admin calls it."""
    return [_shown(relation) for relation in relations()]


@cache
def _shown(relation: AgentRelation) -> Callable[[Agent], str]:
    """Always the same function: the admin compares those of a form with each other."""
    show: Any = partial(_names, relation)
    show.__name__ = relation.name
    show.short_description = relation.name.replace("_", " ")
    return show


def _names(relation: AgentRelation, agent: Agent) -> str:
    return ", ".join(visible(str(row)) for row in relation.rows(agent)) or "-"
