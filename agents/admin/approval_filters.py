"""Filters of the approval queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from agents.hidden_text import visible
from agents.models import Agent, ApprovalRequest
from agents.states import ApprovalStatus


class AgentFilter(admin.SimpleListFilter):
    """A filter by agent. It lists only agents with requests that the user can see."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asking = model_admin.get_queryset(request).order_by().values("run__agent_version__agent")
        agents = Agent.objects.filter(pk__in=asking).order_by("name", "id")
        return [(agent.slug, visible(agent.name)) for agent in agents]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> QuerySet[ApprovalRequest]:
        slug = self.value()
        return queryset if slug is None else queryset.filter(run__agent_version__agent__slug=slug)


class ExpiryFilter(admin.SimpleListFilter):
    """A filter of pending requests by expiry."""

    title = "expiring"
    parameter_name = "expiring"
    _WITHIN = {"hour": timedelta(hours=1), "day": timedelta(days=1)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("hour", "within an hour"),
            ("day", "within a day"),
            ("ever", "at some time"),
            ("never", "never"),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]
    ) -> QuerySet[ApprovalRequest]:
        value = self.value()
        if value is None:
            return queryset
        waiting = queryset.filter(status=ApprovalStatus.PENDING)
        if value in self._WITHIN:
            return waiting.filter(expires_at__lte=timezone.now() + self._WITHIN[value])
        return waiting.filter(expires_at__isnull=value == "never")
