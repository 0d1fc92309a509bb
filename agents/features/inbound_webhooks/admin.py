"""Webhooks that start runs: their owners and deliveries, pausing, and new secrets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import person, tag
from agents.doors.admin.trigger_text import rows_table, run_link
from agents.doors.admin.triggers import TriggerAdmin, TriggerForm
from agents.features.inbound_webhooks.actions import (
    DayBudget,
    budget_of,
    change_inbound_webhook,
    check_inbound_webhook,
    create_inbound_webhook,
    delete_inbound_webhook,
    enable_inbound_webhook,
    rotate_secret,
)
from agents.features.inbound_webhooks.models import InboundWebhook, InboundWebhookRefusal
from agents.hidden_text import visible
from agents.services.errors import ServiceError

SHOWN_DELIVERIES = 30
SHOWN_REFUSALS = 30
_LIMITS = ("max_tokens_a_day", "max_cost_a_day")


class InboundWebhookForm(TriggerForm):
    """A webhook without its secret, which is generated and never read or typed."""

    kept = ("owner", "signing")
    not_stored = _LIMITS
    max_tokens_a_day = forms.IntegerField(min_value=0, required=False, label=_("Max tokens a day"))
    max_cost_a_day = forms.DecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=6,
        required=False,
        label=_("Max cost a day"),
        help_text=_("US dollars."),
    )

    class Meta:
        model = InboundWebhook
        fields = [
            "name",
            "owner",
            "agent",
            "message",
            "signing",
            "thread_policy",
            "per_minute",
            "is_enabled",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        budget = budget_of(self.instance) if self.instance.owner_id is not None else None
        if budget is not None:
            self.initial["max_tokens_a_day"] = budget.max_tokens
            self.initial["max_cost_a_day"] = budget.max_cost

    def check_row(self, row: InboundWebhook) -> None:
        check_inbound_webhook(row)


@admin.register(InboundWebhook)
class InboundWebhookAdmin(TriggerAdmin):
    form = InboundWebhookForm
    list_display = ["shown_name", "owner", "agent", "signing", "state", "created_at"]
    list_filter = ["is_enabled", "signing", "agent"]
    actions = ["new_secret", "pause", "go_on"]

    def enable(self, row: InboundWebhook, enabled: bool, request: HttpRequest) -> None:
        enable_inbound_webhook(row.pk, enabled, by=person(request))

    def remove(self, row: InboundWebhook, request: HttpRequest) -> None:
        delete_inbound_webhook(row.pk, by=person(request))

    def get_fields(self, request: HttpRequest, obj: InboundWebhook | None = None) -> list[Any]:
        fields = [*InboundWebhookForm.Meta.fields, "max_tokens_a_day", "max_cost_a_day"]
        if obj is None:
            if not request.user.is_superuser:
                fields.remove("owner")
            return fields
        if not self.has_change_permission(request, obj):
            fields = list(InboundWebhookForm.Meta.fields)
        return [*fields, "address", "former_until", "deliveries_table", "refusals_table"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: InboundWebhook | None = None
    ) -> list[Any]:
        if obj is None:
            return []
        tables = ["address", "former_until", "deliveries_table", "refusals_table"]
        return ["owner", "signing", *tables]

    def save_model(
        self, request: HttpRequest, obj: InboundWebhook, form: Any, change: bool
    ) -> None:
        by = person(request)
        limits = DayBudget(
            form.cleaned_data.get("max_tokens_a_day"), form.cleaned_data.get("max_cost_a_day")
        )
        if change:
            change_inbound_webhook(obj, by=by, budget=limits)
            return
        self._show(
            request, obj, create_inbound_webhook(self.owned(request, obj), by=by, budget=limits)
        )

    @admin.display(description=_("status"), ordering="is_enabled")
    def state(self, row: InboundWebhook) -> SafeString:
        return (
            tag("completed", gettext("enabled"))
            if row.is_enabled
            else tag("cancelled", gettext("paused"))
        )

    @admin.display(description=_("path that senders post to"))
    def address(self, row: InboundWebhook) -> str:
        return f"/hooks/{row.pk}"

    @admin.display(description=_("last requests"))
    def deliveries_table(self, row: InboundWebhook) -> SafeString | str:
        displayed = [
            (
                each.created_at.isoformat(timespec="seconds"),
                each.key,
                each.size,
                each.get_outcome_display(),
                each.detail,
                each.repeats,
                run_link(each.run_id),
            )
            for each in row.deliveries.all()[:SHOWN_DELIVERIES]
        ]
        headings = (
            gettext("came"),
            gettext("id"),
            gettext("bytes"),
            gettext("outcome"),
            gettext("why"),
            gettext("again"),
            gettext("run"),
        )
        return rows_table(headings, displayed)

    @admin.display(description=_("refused requests"))
    def refusals_table(self, row: InboundWebhook) -> SafeString | str:
        rows = InboundWebhookRefusal.objects.filter(subject=row.pk)[:SHOWN_REFUSALS]
        displayed = [(each.day, each.reason, each.count) for each in rows]
        headings = (gettext("day"), gettext("why"), gettext("times"))
        return rows_table(headings, displayed)

    @admin.action(description=_("Create a new secret"), permissions=["change"])
    def new_secret(self, request: HttpRequest, queryset: QuerySet[InboundWebhook]) -> None:
        for row in self.chosen(request, queryset):
            try:
                self._show(request, row, rotate_secret(row.pk, by=person(request)))
            except ServiceError as error:
                self.report(request, f"{visible(row.name)}: {error.message}", failed=True)

    def _show(self, request: HttpRequest, row: InboundWebhook, secret: str) -> None:
        text = gettext(
            "The secret of %(name)s is %(secret)s Give it to the sender now: it cannot be shown "
            "again."
        )
        values = {"name": visible(row.name), "secret": secret}
        self.message_user(request, text % values, messages.WARNING)
