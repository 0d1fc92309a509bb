"""The form of an agent, with errors at their fields."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.admin.approval_fields import at_its_field
from agents.admin.option_fields import take_options
from agents.admin.relation_fields import RelationField
from agents.kernel.relations import OwnRows, relations
from agents.models import Agent
from agents.services.agent_definitions.actions import build_spec, option_values
from agents.services.agent_definitions.prompt_values import check_names
from agents.services.agent_definitions.rights import RESERVED_SLUGS
from agents.services.agent_definitions.script_files import check_script
from agents.services.errors import InvalidRequest


class AgentForm(forms.ModelForm):
    """An agent's form. It runs the checks of `save_agent` early, to show errors at their fields."""

    class Meta:
        model = Agent
        exclude: tuple[str, ...] = ()  # the admin's fieldsets name what is shown
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {**option_values(self.instance), **self.initial}
        for name, field in self.relation_fields.items():
            self.initial.setdefault(name, field.begin(self.instance))

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug in RESERVED_SLUGS and "slug" in self.changed_data:
            raise ValidationError(
                "This is the slug of an agent that Vel makes by itself: choose another one."
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
        for name, field in self.relation_fields.items():
            if name in self.cleaned_data:
                rows = field.checked(self.instance, self.cleaned_data[name])
                self.cleaned_data[name] = rows
        return cleaned

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
