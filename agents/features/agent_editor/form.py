"""The form of an agent's definition: a field for each field of the agent's file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils.text import slugify
from django.utils.translation import gettext

from agents.agent_files.shape import Identity, Rows, default_of, file_fields
from agents.doors.admin.json_input import JsonText
from agents.doors.agent_form.fields import (
    Make,
    definition_field,
    entered_value,
    special_fields,
)
from agents.doors.agent_form.labels import label_of, option_text
from agents.doors.agent_form.rows import RowsField
from agents.doors.agent_form.texts import LongText
from agents.hidden_text import escaped_text, unescaped_text, visible
from agents.kernel.options import help_of, option_classes
from agents.kernel.relations import AgentRelation, OwnRows, relation_named, relations
from agents.models import Agent
from agents.selectors.visible import Person
from agents.services.agent_definitions.definitions import whole_definition
from agents.services.agent_definitions.files import NAMED
from agents.services.agent_definitions.rights import check_may_change
from agents.services.errors import NotAllowed

FIXED = ("slug",)
"""Fields that the form does not change: the address of the page contains the slug."""
SHARING = "Sharing"
LONG_TEXTS = {"description": 2, "system_prompt": 18}
"""The height of texts with several lines."""


class TextField(LongText):
    r"""A text as it is typed, with invisible characters as `\u{202e}`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, required=False, **options)

    def prepare_value(self, value: Any) -> Any:
        return value

    def to_python(self, value: Any) -> str:
        return unescaped_text(super().to_python(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(initial) != self.to_python(data)


class NamesChoice(forms.MultipleChoiceField):
    """Checkboxes for names of rows, with those that the agent has."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, labels: Mapping[str, str], present: Collection[str], **options: Any) -> None:
        text = gettext("%(name)s (not here)")
        missing = {name: text % {"name": visible(name)} for name in present if name not in labels}
        choices = [*labels.items(), *missing.items()]
        super().__init__(required=False, choices=choices, **options)


def sections() -> dict[str, tuple[str, list[str]]]:
    """Return the sections of the form in their order: a name, with the title and the fields."""
    found: dict[str, list[str]] = {"Agent": [*Identity.model_fields]}
    for kind in option_classes():
        found.setdefault(kind.title or kind.__name__, []).extend(kind.model_fields)
    for relation in relations():
        found.setdefault(relation.title, []).append(relation.name)
    found.setdefault("Approval", []).append("approver_groups")
    rest = [name for name in Rows.model_fields if name != "approver_groups"]
    found.setdefault(SHARING, []).extend(rest)
    return {
        slugify(title): (option_text(title), [name for name in names if name not in FIXED])
        for title, names in found.items()
    }


class DefinitionForm(forms.Form):
    """The fields `names` of an agent's definition, with their present values."""

    use_required_attribute = False

    def __init__(
        self,
        agent: Agent,
        names: Collection[str],
        data: Any = None,
        present: Mapping[str, Any] | None = None,
    ) -> None:
        present = whole_definition(agent) if present is None else present
        initial = {
            name: escaped_text(value) if isinstance(value, str) else value
            for name, value in present.items()
        }
        super().__init__(data, initial=initial, label_suffix="")
        special = special_fields()
        for name in file_fields():
            if name in names and name not in FIXED:
                self.fields[name] = _field(agent, name, present[name], special)

    def values(self) -> dict[str, Any]:
        """Return the changed fields of the valid form, as JSON data."""
        fields = file_fields()
        return {
            name: entered_value(fields[name], self.cleaned_data[name], default_of(name))
            for name in self.changed_data
        }


def _field(agent: Agent, name: str, present: Any, special: Mapping[str, Make]) -> forms.Field:
    field = file_fields()[name]
    relation = relation_named(name)
    words = {"help_text": option_text(help_of(field))}
    if isinstance(relation, OwnRows):
        found: forms.Field = RowsField(
            relation.item, noun=option_text(name.removesuffix("s")), agent=agent, **words
        )
    elif relation is not None:
        found = NamesChoice(_labels(relation, agent), present, **words)
    elif name in NAMED:
        groups = Group.objects.order_by("name").values_list("name", flat=True)
        found = NamesChoice({group: visible(group) for group in groups}, present, **words)
    else:
        found = definition_field(name, field, present, special=special)
        if isinstance(found, forms.CharField) and not isinstance(found, JsonText):
            found = _text(name, found)
    found.label = label_of(name)
    return found


def _labels(relation: AgentRelation, agent: Agent) -> dict[str, str]:
    rows = relation.named(agent)
    return {name: _label(name, getattr(rows[name], "description", "")) for name in sorted(rows)}


def _label(name: str, description: str) -> str:
    return visible(f"{name}: {description}" if description else name)


def _text(name: str, field: forms.Field) -> TextField:
    widget: forms.Widget = forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"})
    if name in LONG_TEXTS:
        attrs = {"rows": LONG_TEXTS[name], "class": "code" if name == "system_prompt" else ""}
        widget = forms.Textarea(attrs=attrs)
    return TextField(widget=widget, help_text=field.help_text)


def why_not(user: Person, agent: Agent, name: str) -> str:
    """Return why `user` cannot change the field `name` of the agent; empty if they can."""
    try:
        check_may_change(user, agent, [name])
    except NotAllowed as error:
        return error.message
    return ""
