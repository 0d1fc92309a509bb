"""The form of an agent, with errors at their fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django import forms
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from agents.doors.agent_form.checks import at_its_field
from agents.doors.agent_form.fields import take_options
from agents.doors.agent_form.labels import lazy_label, option_text
from agents.doors.agent_form.texts import LongText
from agents.hidden_text import visible
from agents.kernel.relations import AgentRelation, OwnRows, relations
from agents.models import Agent
from agents.services.agent_definitions.actions import build_spec, option_values
from agents.services.agent_definitions.definitions import definition_tag
from agents.services.agent_definitions.prompt_values import check_names
from agents.services.agent_definitions.rights import RESERVED_SLUGS
from agents.services.agent_definitions.script_files import check_script
from agents.services.errors import InvalidRequest


class RowSelector(FilteredSelectMultiple):
    """The admin's two lists in their own element: their script puts them before the label."""

    def render(self, *arguments: Any, **more: Any) -> SafeString:
        return format_html(
            '<div class="related-widget-wrapper">{}</div>', super().render(*arguments, **more)
        )


class RelationField(forms.ModelMultipleChoiceField):
    """A choice of the rows that an agent can have. `checked` runs the check of the feature."""

    def __init__(self, relation: AgentRelation) -> None:
        super().__init__(
            queryset=relation.choices(Agent()).none(),
            required=False,
            label=lazy_label(relation.name),
            widget=RowSelector(option_text(relation.title).lower(), is_stacked=False),
            help_text=option_text(relation.help_text),
        )
        self.relation = relation

    def begin(self, agent: Agent) -> list[Any]:
        """Set the choices for `agent`. Return the keys of its current rows."""
        self.queryset = self.relation.choices(agent)
        return [row.pk for row in self.relation.rows(agent)]

    def checked(self, agent: Agent, rows: Any) -> list[Any]:
        """Return the selected rows for `agent`. Raises `ValidationError`."""
        chosen = list(rows)
        try:
            self.relation.check(agent, chosen)
        except InvalidRequest as error:
            raise ValidationError({self.relation.name: at_its_field(error.message)[1]}) from None
        return chosen


def relation_form_fields(may_change: Callable[[str], bool]) -> dict[str, forms.Field]:
    """Return the form fields of the relations that the user can change, by name."""
    return {
        relation.name: RelationField(relation)
        for relation in _chosen()
        if may_change(relation.name)
    }


def relation_fieldsets(may_change: Callable[[str], bool]) -> list[tuple[str, dict[str, Any]]]:
    """Return a fieldset for each relation. For relations that are read-only it shows the names."""
    return [
        (relation.title, {"fields": [relation.name if may_change(relation.name) else shown]})
        for relation, shown in zip(_chosen(), relations_shown(), strict=True)
    ]


def relations_shown() -> list[Callable[[Agent], str]]:
    """Return, for each relation without an inline, a function that shows the names of its rows."""
    return [_shown(relation) for relation in _chosen()]


def _chosen() -> list[AgentRelation]:
    """Return the relations whose rows exist already. The others have inlines."""
    return [relation for relation in relations() if not isinstance(relation, OwnRows)]


@cache
def _shown(relation: AgentRelation) -> Callable[[Agent], str]:
    """Return the function for a relation. Cached, because the admin compares these functions."""
    show: Any = partial(_names, relation)
    show.__name__ = relation.name
    show.short_description = lazy_label(relation.name)
    return show


def _names(relation: AgentRelation, agent: Agent) -> str:
    return ", ".join(visible(str(row)) for row in relation.rows(agent)) or "-"


class AgentForm(forms.ModelForm):
    """An agent's form. It runs the checks of `save_agent` early, to show errors at their fields.

    `opened` has the tag of the definition that the page showed. A form without it is not compared
    with later changes of other people.
    """

    opened = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Agent
        exclude: tuple[str, ...] = ()  # the admin's fieldsets name what is shown
        field_classes = {"description": LongText}
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {**option_values(self.instance), **self.initial}
        if self.instance.pk and not self.instance._state.adding:
            self.initial["opened"] = definition_tag(self.instance)
        for name, field in self.relation_fields.items():
            self.initial.setdefault(name, field.begin(self.instance))

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug in RESERVED_SLUGS and "slug" in self.changed_data:
            raise ValidationError(
                gettext(
                    "Vel reserves this slug for an agent that it creates automatically. Choose "
                    "another slug."
                )
            )
        return slug

    @property
    def relation_fields(self) -> dict[str, RelationField]:
        """The relation fields that the user can edit. Their names are not model fields."""
        fields = self.fields.items()
        return {name: field for name, field in fields if isinstance(field, RelationField)}

    @property
    def related(self) -> dict[str, list[Any]]:
        """The selected rows by relation."""
        return {name: self.cleaned_data[name] for name in self.relation_fields}

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        self._check_opened()
        for name, field in self.relation_fields.items():
            if name in self.cleaned_data:
                rows = field.checked(self.instance, self.cleaned_data[name])
                self.cleaned_data[name] = rows
        return cleaned

    def _check_opened(self) -> None:
        """Refuse to store the form over changes of others. The admin calls it in a transaction."""
        opened = self.cleaned_data.get("opened")
        stored = Agent.objects.select_for_update().filter(pk=self.instance.pk).first()
        if opened and stored is not None and opened != definition_tag(stored):
            raise ValidationError(
                gettext(
                    "This agent has changed since you opened this page, and nothing was saved. "
                    "Open the page again in another tab, and make your changes there."
                )
            )

    def _post_clean(self) -> None:
        """Check whether a run could use the completed agent."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it
        if self.errors:
            return
        try:
            take_options(self.instance, self.cleaned_data)
        except ValidationError as error:
            self.add_error(None, error)
            return
        try:
            # Rows that belong to the agent have their own forms.
            own = {each.name: () for each in relations() if isinstance(each, OwnRows)}
            build_spec(self.instance, own)
            if "model" in self.changed_data:
                check_script(self.instance.model)
            if "system_prompt" in self.changed_data:
                check_names(self.instance.system_prompt, "system_prompt")
        except InvalidRequest as error:
            field, reason = at_its_field(error.message)
            if field in self.fields:
                self.add_error(field, reason)
            else:
                self.add_error(None, error.message)
