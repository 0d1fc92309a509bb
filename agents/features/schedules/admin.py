"""Schedules: their owners and the results of their times, pausing and running."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import person, tag
from agents.doors.admin.trigger_text import rows_table, run_link
from agents.doors.admin.triggers import TriggerAdmin, TriggerForm
from agents.features.schedules.actions import (
    check_schedule,
    delete_schedule,
    enable_schedule,
    save_schedule,
)
from agents.features.schedules.firing import fire_now
from agents.features.schedules.models import Schedule
from agents.hidden_text import visible
from agents.services.errors import ServiceError
from agents.services.runs.trigger_rights import check_trigger

SHOWN_FIRINGS = 30


class ScheduleForm(TriggerForm):
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

    def check_row(self, row: Schedule) -> None:
        check_trigger(row)
        check_schedule(row)


@admin.register(Schedule)
class ScheduleAdmin(TriggerAdmin):
    form = ScheduleForm
    list_display = ["shown_name", "owner", "agent", "when", "state", "due_at"]
    list_filter = ["is_enabled", "agent"]
    actions = ["run_now", "pause", "go_on"]

    def enable(self, row: Schedule, enabled: bool, request: HttpRequest) -> None:
        enable_schedule(row.pk, enabled, by=person(request))

    def remove(self, row: Schedule, request: HttpRequest) -> None:
        delete_schedule(row.pk, by=person(request))

    def get_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        fields = list(ScheduleForm.Meta.fields)
        if obj is None and not request.user.is_superuser:
            fields.remove("owner")
        return fields if obj is None else [*fields, "due_at", "firings_table"]

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        return [] if obj is None else ["owner", "due_at", "firings_table"]

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        save_schedule(obj if change else self.owned(request, obj), by=person(request))

    @admin.display(description=_("when"))
    def when(self, row: Schedule) -> str:
        return row.when

    @admin.display(description=_("status"), ordering="is_enabled")
    def state(self, row: Schedule) -> SafeString:
        if not row.is_enabled:
            return tag("cancelled", gettext("paused"))
        if row.due_at:
            return tag("completed", gettext("enabled"))
        return tag("expired", gettext("over"))

    @admin.display(description=_("its last times"))
    def firings_table(self, row: Schedule) -> SafeString | str:
        displayed = [
            (f.due_at.isoformat(), f.get_outcome_display(), f.detail, f.missed, run_link(f.run_id))
            for f in row.firings.all()[:SHOWN_FIRINGS]
        ]
        headings = (
            gettext("due"),
            gettext("outcome"),
            gettext("why"),
            gettext("missed before"),
            gettext("run"),
        )
        return rows_table(headings, displayed)

    @admin.action(description=_("Start a run now"), permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        for row in self.chosen(request, queryset):
            try:
                run = fire_now(row.pk, by=person(request))
            except ServiceError as error:
                self.report(request, f"{visible(row.name)}: {error.message}", failed=True)
                continue
            text = gettext("%(name)s: run %(run)s was started.")
            self.report(request, text % {"name": visible(row.name), "run": run.pk})
