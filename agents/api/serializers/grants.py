"""Serializers for grants and policy rehearsals."""

from __future__ import annotations

import datetime

from django.db.models import F, QuerySet
from rest_framework import serializers

from agents.doors.rest.list_queries import CreatedQuery, ordering
from agents.doors.rest.serializers import Flag, StrictSerializer, Text
from agents.middleware.rehearsal import MAX_DAYS, Rehearsal
from agents.models import ApprovalGrant
from agents.services.approvals.grants import grant_state


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
    agent = Text(max_length=100, required=False)
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
