"""The form for a decision in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from agents.doors.admin.json_input import parse_json
from agents.hidden_text import unescaped_text
from agents.kernel.proposals import proposal_kind
from agents.models import ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest
from agents.states import Decision


class DecisionForm(forms.Form):
    """A decision, with the digest of the displayed request.

    `input` is JSON, or the text of a proposal.
    """

    decision = forms.ChoiceField(choices=Decision.choices)
    digest = forms.CharField()
    input = forms.CharField(required=False, strip=False)
    reason = forms.CharField(required=False, max_length=10_000)

    def __init__(self, data: QueryDict, asked: ApprovalRequest) -> None:
        super().__init__(data)
        self._is_text = proposal_kind(asked) is not None

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        edited = None
        if data.get("decision") == Decision.EDIT:
            typed = data.get("input", "")
            edited = self._text(typed) if self._is_text else self._json(typed)
        return {**data, "input": edited}

    def _text(self, typed: str) -> dict[str, Any]:
        # Browsers send all line breaks as CR LF.
        return {"content": unescaped_text(typed.replace("\r\n", "\n"))}

    def _json(self, typed: str) -> Any:
        try:
            edited = parse_json(typed)
        except ValidationError as error:
            self.add_error("input", error)
            return None
        if not isinstance(edited, dict):
            self.add_error("input", 'The input must be a JSON object, as {"path": "notes.md"}.')
        return edited

    def answer(self) -> DecisionRequest:
        data = self.cleaned_data
        return DecisionRequest(data["decision"], data["digest"], data["input"], data["reason"])
