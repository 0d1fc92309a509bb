"""Serializers for approval requests and decisions."""

from __future__ import annotations

import datetime
from typing import Any

from django.db.models import F, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.api.serializers.grants import TermsBody
from agents.doors.rest.list_queries import CreatedQuery, ordering
from agents.doors.rest.serializers import StrictSerializer, Text
from agents.kernel.proposals import ProposalKind, proposal_kind, proposal_kinds, request_relations
from agents.models import ApprovalRequest
from agents.models.approval import request_kinds
from agents.services.approvals.grants import GrantTerms
from agents.states import ApprovalStatus, Decision

REASON_CHARACTERS = 100_000
"""With the decision `respond`, the reason may be the whole result of the tool."""


class DecisionBody(StrictSerializer):
    """A decision: `agents.services.approvals.decisions.DecisionRequest` with a required digest."""

    decision = serializers.ChoiceField(choices=Decision.values)
    digest = Text(max_length=64)
    input = serializers.DictField(required=False, allow_null=True)
    reason = Text(max_length=REASON_CHARACTERS, default="", allow_blank=True)
    always = TermsBody(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # An approval must run the displayed input, independent of other fields of the body.
        if attrs.get("input") is not None and attrs["decision"] != Decision.EDIT:
            raise ValidationError({"input": ["Only the decision `edit` takes an input."]})
        if attrs.get("always") is not None:
            attrs["always"] = GrantTerms(**attrs["always"])
        return attrs


APPROVAL_ORDER = {"created_at": "id"}


class ApprovalListQuery(CreatedQuery):
    status = serializers.ChoiceField(choices=ApprovalStatus.values, required=False)
    run = Text(max_length=64, required=False)
    kind = serializers.ChoiceField(choices=[name for name, _ in request_kinds()], required=False)
    agent = Text(max_length=100, required=False)
    tool = Text(max_length=200, required=False)
    ordering = ordering("created_at")


def with_approval_columns(requests: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    """Annotate the columns of `ApprovalShape`, in one query, without the results of calls."""
    return requests.select_related("decided_by", "first_approver", *request_relations()).annotate(
        thread=F("run__thread_id"),
        agent_slug=F("run__agent_version__agent__slug"),
        call_id=F("tool_call__call_id"),
    )


@extend_schema_field({"type": "object", "additionalProperties": {}, "nullable": True})
class ProposalField(serializers.Field):
    """The proposed change of a request of one kind of proposals; null for other requests."""

    def __init__(self, kind: ProposalKind) -> None:
        super().__init__(source="*", read_only=True, help_text=kind.shown.__doc__)
        self._kind = kind

    def to_representation(self, request: ApprovalRequest) -> dict[str, Any] | None:
        return self._kind.shown(request) if proposal_kind(request) is self._kind else None


class ApprovalShape(serializers.Serializer[ApprovalRequest]):
    """An approval request. Send its `digest` back with the decision."""

    id = serializers.CharField()
    run = serializers.CharField(source="run_id")
    thread = serializers.CharField()
    agent = serializers.CharField(source="agent_slug")
    kind = serializers.ChoiceField(choices=request_kinds())
    tool = serializers.CharField()
    call_id = serializers.CharField(allow_null=True)
    input = serializers.JSONField()
    changes = serializers.JSONField(source="preview", allow_null=True)
    prompt = serializers.CharField()
    allowed_decisions = serializers.ListField(child=serializers.CharField())
    approvals_needed = serializers.IntegerField()
    first_approver = serializers.CharField(
        source="first_approver.get_username", default=None, allow_null=True
    )
    self_approval = serializers.BooleanField()
    digest = serializers.CharField()
    status = serializers.ChoiceField(choices=ApprovalStatus.choices)
    decision = serializers.ChoiceField(choices=Decision.choices, allow_blank=True)
    edited_input = serializers.JSONField(allow_null=True)
    reason = serializers.CharField()
    decided_by = serializers.CharField(
        source="decided_by.get_username", default=None, allow_null=True
    )
    decided_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    expires_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)

    def get_fields(self) -> dict[str, Any]:
        """Return the declared fields, with a field for each kind of proposals after `changes`."""
        fields: dict[str, Any] = {}
        for name, declared in super().get_fields().items():
            fields[name] = declared
            if name == "changes":
                fields |= {kind.name: ProposalField(kind) for kind in proposal_kinds().values()}
        return fields
