"""Schedules: who has which, what became of their times, pausing and running."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents.admin.journal import SealedAdmin, person, tag
from agents.admin.trigger_text import may_define, rows_table, run_link
from agents.hidden_text import visible
from agents.models import Schedule
from agents.services.errors import ServiceError
from agents.services.schedule_firing import fire_now
from agents.services.schedules import (
    check_schedule,
    delete_schedule,
    enable_schedule,
    save_schedule,
)
from agents.services.trigger_rights import check_trigger

SHOWN_FIRINGS = 30


class ScheduleForm(forms.ModelForm):
    """A schedule. Its owner is who makes it; superusers make those of others."""

    owner_default: Any = None

    class Meta:
        model = Schedule
        fields = [
            "name",
            "owner",
            "agent",
            "message",
            "cron",
            "interval_seconds",
            "time_zone",
            "thread_policy",
            "overlap",
            "ends_at",
            "is_enabled",
        ]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if self.errors:
            return data
        row = Schedule(**{"owner": self.owner_default, **data})
        if self.instance.owner_id is not None:
            row.owner = self.instance.owner
        try:
            check_trigger(row)
            check_schedule(row)
        except ServiceError as error:
            raise ValidationError(error.message) from None
        return data


@admin.register(Schedule)
class ScheduleAdmin(SealedAdmin):
    """Saves go through `save_schedule`. Operators pause and delete those of others."""

    form = ScheduleForm
    list_display = ["shown_name", "owner", "agent", "when", "state", "due_at"]
    list_filter = ["is_enabled", "agent"]
    list_select_related = ["owner", "agent"]
    search_fields = ["name", "^id", f"owner__{get_user_model().USERNAME_FIELD}"]
    ordering = ["-id"]
    actions = ["run_now", "pause", "go_on"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj) and may_define(
            request, obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj) and (
            admin.ModelAdmin.has_change_permission(self, request, obj)
        )

    def get_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        fields = list(ScheduleForm.Meta.fields)
        if obj is None and not request.user.is_superuser:
            fields.remove("owner")
        return fields if obj is None else [*fields, "due_at", "firings_table"]

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        return [] if obj is None else ["owner", "due_at", "firings_table"]

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        made = super().get_form(request, *args, **kwargs)
        made.owner_default = request.user  # type: ignore[attr-defined]  # the form's own
        return made

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": request.user.pk}

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        if obj.owner_id is None or not request.user.is_superuser:
            obj.owner_id = obj.owner_id if change else person(request).pk
        save_schedule(obj, by=person(request))

    def delete_model(self, request: HttpRequest, obj: Schedule) -> None:
        delete_schedule(obj.pk, by=person(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        for row in queryset:
            delete_schedule(row.pk, by=person(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The record of its times goes with it; who may delete it needs no right to that."""
        deleted, counts, _, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    @admin.display(description="name", ordering="name")
    def shown_name(self, row: Schedule) -> str:
        return visible(row.name)

    @admin.display(description="when")
    def when(self, row: Schedule) -> str:
        return row.when

    @admin.display(description="status", ordering="is_enabled")
    def state(self, row: Schedule) -> SafeString:
        if not row.is_enabled:
            return tag("cancelled", "paused")
        return tag("completed", "enabled") if row.due_at else tag("expired", "over")

    @admin.display(description="its last times")
    def firings_table(self, row: Schedule) -> SafeString | str:
        shown = [
            (f.due_at.isoformat(), f.get_outcome_display(), f.detail, f.missed, run_link(f.run_id))
            for f in row.firings.all()[:SHOWN_FIRINGS]
        ]
        return rows_table(("due", "outcome", "why", "missed before", "run"), shown)

    @admin.action(description="Start a run now", permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        for row in self.chosen(request, queryset):
            try:
                run = fire_now(row.pk, by=person(request))
            except ServiceError as error:
                self.report(request, f"{visible(row.name)}: {error.message}", failed=True)
                continue
            self.report(request, f"{visible(row.name)}: run {run.pk} was started.")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        self._enable(request, queryset, enabled=False)

    @admin.action(description="Go on", permissions=["change"])
    def go_on(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        self._enable(request, queryset, enabled=True)

    def _enable(self, request: HttpRequest, queryset: QuerySet[Schedule], *, enabled: bool) -> None:
        for row in self.chosen(request, queryset):
            try:
                enable_schedule(row.pk, enabled, by=person(request))
            except ServiceError as error:
                self.report(request, f"{visible(row.name)}: {error.message}", failed=True)
                continue
            self.report(request, f"{visible(row.name)}: {'goes on' if enabled else 'paused'}.")
