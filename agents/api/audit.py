"""The audit log, for operators."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import JsonObject, PageQuery, read_query
from agents.models import AuditEntry, Door, TokenScope
from agents.selectors.audit import search_entries
from agents.selectors.visible import VIEW_AUDIT, audit_for
from agents.services.errors import NotAllowed


class AuditQuery(PageQuery):
    """Filters of the audit log, combined with AND. `since` and `before` are times."""

    q = serializers.CharField(required=False, max_length=200)
    action = serializers.CharField(required=False, max_length=60)
    kind = serializers.CharField(required=False, max_length=40)
    target_id = serializers.CharField(required=False, max_length=64)
    actor_id = serializers.CharField(required=False, max_length=64)
    door = serializers.ChoiceField(Door.choices, required=False)
    since = serializers.DateTimeField(required=False)
    before = serializers.DateTimeField(required=False)


class AuditShape(serializers.Serializer[AuditEntry]):
    """An audit entry. `changes` is `{field: [before, after]}`; `actor` is empty for the system."""

    id = serializers.CharField()
    created_at = serializers.DateTimeField()
    actor = serializers.CharField()
    actor_id = serializers.CharField()
    door = serializers.ChoiceField(Door.choices)
    address = serializers.CharField()
    credential = serializers.CharField()
    action = serializers.CharField()
    kind = serializers.CharField()
    target_id = serializers.CharField()
    target = serializers.CharField()
    changes = JsonObject()
    note = serializers.CharField()

    def to_representation(self, entry: AuditEntry) -> dict[str, Any]:
        """Return the entry without conversion: values in `changes` have any type."""
        shown: dict[str, Any] = {str(name): getattr(entry, str(name)) for name in self.fields}
        return {**shown, "created_at": entry.created_at.isoformat()}


class Audit(ApiView):
    """The endpoint `GET /audit`: latest first. Requires the permission `view_auditentry`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_audit", "List the entries of the audit log", query=AuditQuery, answer=Page(AuditShape)
    )
    def get(self, request: Request) -> Response:
        user = person(request)
        if not user.has_perm(VIEW_AUDIT):  # type: ignore[attr-defined]  # a user with permissions
            raise NotAllowed(f"The audit log needs the permission {VIEW_AUDIT}.")
        query = read_query(AuditQuery, request)
        entries = audit_for(user)
        for name in ("action", "kind", "target_id", "actor_id", "door"):
            if name in query:
                entries = entries.filter(**{name: query[name]})
        if "since" in query:
            entries = entries.filter(created_at__gte=query["since"])
        if "before" in query:
            entries = entries.filter(created_at__lt=query["before"])
        return page_of(
            search_entries(entries, query.get("q", "")),
            AuditShape().to_representation,
            by="id",
            limit=query["limit"],
            cursor=query.get("cursor"),
            descending=True,
        )
