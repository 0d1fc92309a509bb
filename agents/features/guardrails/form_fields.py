"""The field for an agent's guardrails."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.features.guardrails.registry import guardrails


class GuardrailChoice(forms.MultipleChoiceField):
    """Registered guardrails, and those of the agent, registered or not."""

    widget = forms.CheckboxSelectMultiple
    default_error_messages = {
        "invalid_choice": _(
            'There is no guardrail “%(value)s”. The operator registers it in VEL["GUARDRAILS"].'
        ),
    }

    def __init__(self, present: Sequence[str], help_text: str) -> None:
        try:
            known = guardrails()
        except ImproperlyConfigured:
            known = {}  # the system checks report the error
        choices = [
            (name, _label(name, guardrail.description, always=guardrail.for_every_agent))
            for name, guardrail in known.items()
        ]
        missing = gettext("%(name)s (not registered)")
        choices += [(name, missing % {"name": name}) for name in present if name not in known]
        super().__init__(required=False, choices=choices, help_text=help_text)


def _label(name: str, description: str, *, always: bool) -> str:
    label = f"{name}: {description}" if description else name
    return gettext("%(name)s (every agent has it)") % {"name": label} if always else label


FORM_FIELDS = {"guardrails": GuardrailChoice}
