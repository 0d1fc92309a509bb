"""Serializers for approval requests and decisions."""

from __future__ import annotations

import datetime
from typing import Any

from django.db.models import F, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.list_queries import CreatedQuery, ordering
from agents.doors.rest.serializers import AgentField, Flag, StrictSerializer, Text
from agents.features.approvals.pending_responses import responses_by
from agents.kernel.proposals import ProposalKind, proposal_kind, proposal_kinds, request_relations
from agents.middleware.rehearsal import MAX_DAYS, Rehearsal
from agents.models import ApprovalGrant, ApprovalRequest
from agents.models.approval import request_kinds
from agents.services.approvals.grants import GrantTerms, grant_state
from agents.states import ApprovalStatus, Decision


class TermsBody(StrictSerializer):
    """The terms of `agents.services.approvals.grants.GrantTerms`, which checks the limits."""

    match = serializers.ChoiceField(choices=["input", "command", "path", "tool"], default="input")
    pattern = Text(max_length=2000, default="", allow_blank=True)
    for_everybody = Flag(default=False)
    thread_only = Flag(default=False)
    days = serializers.IntegerField(default=7)
    max_uses = serializers.IntegerField(default=100)
    reason = Text(max_length=1000, default="", allow_blank=True)


GRANT_ORDER = {"created_at": "id"}


class GrantListQuery(CreatedQuery):
    agent = AgentField(required=False)
    good = serializers.BooleanField(required=False)
    ordering = ordering("-created_at")


def with_grant_columns(grants: QuerySet[ApprovalGrant]) -> QuerySet[ApprovalGrant]:
    """Annotate the columns of `GrantShape`, in one query."""
    return grants.select_related("owner", "created_by", "revoked_by").annotate(
        agent_slug=F("agent__slug")
    )


class GrantShape(serializers.Serializer[ApprovalGrant]):
    """A grant. If `owner` is null, it covers runs of all users."""

    id = serializers.CharField()
    agent = serializers.CharField(source="agent_slug")
    tool = serializers.CharField()
    condition = serializers.JSONField()
    owner = serializers.CharField(source="owner.get_username", default=None, allow_null=True)
    thread = serializers.CharField(source="thread_id", allow_null=True)
    reason = serializers.CharField()
    state = serializers.SerializerMethodField()
    max_uses = serializers.IntegerField()
    uses = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    expires_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    request = serializers.CharField(source="request_id", allow_null=True)
    created_by = serializers.CharField(
        source="created_by.get_username", default=None, allow_null=True
    )
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    revoked_by = serializers.CharField(
        source="revoked_by.get_username", default=None, allow_null=True
    )
    revoked_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )

    def get_state(self, grant: ApprovalGrant) -> str:
        return grant_state(grant)


class RehearsalBody(StrictSerializer):
    """A policy that replaces the agent's. Fields that are omitted keep the agent's values."""

    approval_rules = serializers.ListField(required=False)
    interrupt_on = serializers.DictField(required=False)
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, default=7)


class CountsShape(serializers.Serializer[object]):
    before = serializers.DictField(child=serializers.IntegerField())
    after = serializers.DictField(child=serializers.IntegerField())
    changed = serializers.IntegerField()


class ExampleShape(serializers.Serializer[object]):
    run = serializers.CharField(source="run_id")
    call_id = serializers.CharField()
    tool = serializers.CharField()
    input = serializers.CharField()
    status = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()
    by = serializers.CharField(source="source")


class RehearsalShape(serializers.Serializer[Rehearsal]):
    """The result of a rehearsal: `agents.middleware.rehearsal.Rehearsal`."""

    days = serializers.IntegerField()
    calls = serializers.IntegerField()
    cut = serializers.BooleanField()
    left_out = serializers.IntegerField()
    changed = serializers.IntegerField()
    tools = serializers.DictField(child=CountsShape())
    examples = ExampleShape(many=True)
    hidden = serializers.IntegerField()


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
    agent = AgentField(required=False)
    tool = Text(max_length=200, required=False)
    ordering = ordering("created_at")


_LARGE = (
    "run__agent_version__spec",
    "run__attachments",
    "run__opening_note",
    "run__output_schema",
    "run__structured_output",
    "run__subagent_spec",
)


def with_approval_columns(requests: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    """Annotate the columns of `ApprovalShape`, in one query, without the results of calls."""
    related = ("run__agent_version", "decided_by", "first_approver", *request_relations())
    return (
        requests.select_related(*related)
        .defer(*_LARGE)
        .annotate(
            thread=F("run__thread_id"),
            agent_slug=F("run__agent_version__agent__slug"),
            call_id=F("tool_call__call_id"),
        )
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
    """An approval request. Send its `digest` back with the decision.

    The context has the `rights` of the reader.
    """

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
    allowed_decisions = serializers.SerializerMethodField(
        help_text="The decisions that you may make now. Empty if the request is not pending."
    )
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

    def get_allowed_decisions(self, request: ApprovalRequest) -> list[str]:
        return list(responses_by(request, self.context["rights"]).offered)

    def get_fields(self) -> dict[str, Any]:
        """Return the declared fields, with a field for each kind of proposals after `changes`."""
        fields: dict[str, Any] = {}
        for name, declared in super().get_fields().items():
            fields[name] = declared
            if name == "changes":
                fields |= {kind.name: ProposalField(kind) for kind in proposal_kinds().values()}
        return fields
