"""Notification targets, and the state of each message."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, tag
from agents.features.notifications.actions import (
    check_target,
    remove_target,
    renew_secret,
    save_target,
)
from agents.features.notifications.delivery import retry_notification, send_test
from agents.features.notifications.models import (
    Notification,
    NotificationStatus,
    NotificationTarget,
)
from agents.features.notifications.webhook import DeliveryFailed
from agents.hidden_text import visible
from agents.kernel.notices import kind_of
from agents.services.errors import InvalidRequest, ServiceError

TESTS_AT_ONCE = 3
"""Targets of one test. Each can take ten seconds, during which the page waits."""

_COLOURS: dict[str, str] = {
    NotificationStatus.PENDING: "pending",
    NotificationStatus.DELIVERED: "completed",
    NotificationStatus.GIVEN_UP: "failed",
    NotificationStatus.OBSOLETE: "cancelled",
}


class TargetForm(forms.ModelForm):
    """A target without its secret, which is generated and never read or typed."""

    class Meta:
        model = NotificationTarget
        fields = ["kind", "address", "agent", "is_active"]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if "kind" in data and "address" in data:
            try:
                check_target(data["kind"], data["address"])
            except InvalidRequest as error:
                raise ValidationError({"address": error.message}) from None
        return data


@admin.register(NotificationTarget)
class NotificationTargetAdmin(admin.ModelAdmin):
    """Saves go through `save_target`; a new secret is shown once, after saving."""

    form = TargetForm
    list_display = ["shown_address", "kind", "agent", "is_active", "created_at"]
    list_filter = ["kind", "is_active", "agent"]
    list_select_related = ["agent"]
    search_fields = ["address"]
    ordering = ["created_at", "id"]
    actions = ["send_test_message", "make_new_secret"]
    show_full_result_count = False

    @admin.display(description=_("address"), ordering="address")
    def shown_address(self, target: NotificationTarget) -> str:
        return visible(target.address)

    def save_model(
        self, request: HttpRequest, obj: NotificationTarget, form: TargetForm, change: bool
    ) -> None:
        self._show(request, obj, save_target(obj))

    def delete_model(self, request: HttpRequest, obj: NotificationTarget) -> None:
        remove_target(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[NotificationTarget]) -> None:
        for target in queryset:
            remove_target(target.pk)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Require no permission for the messages, which are deleted with their target."""
        deleted, counts, _, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    def _show(self, request: HttpRequest, target: NotificationTarget, secret: str | None) -> None:
        if secret is not None:
            text = gettext(
                "The secret of %(address)s is %(secret)s Give it to the receiver now: it cannot be "
                "shown again."
            )
            values = {"address": visible(target.address), "secret": secret}
            self.message_user(request, text % values, messages.WARNING)

    @admin.action(description=_("Send a test message"), permissions=["change"])
    def send_test_message(
        self, request: HttpRequest, queryset: QuerySet[NotificationTarget]
    ) -> None:
        targets = list(queryset[: TESTS_AT_ONCE + 1])
        if len(targets) > TESTS_AT_ONCE:
            text = gettext("Select %(most)s targets at most.") % {"most": TESTS_AT_ONCE}
            self.message_user(request, text, level=messages.ERROR)
            return
        for target in targets:
            label = visible(target.address)
            try:
                send_test(target)
            except (DeliveryFailed, ServiceError) as error:
                self.message_user(request, f"{label}: {visible(str(error))}.", messages.ERROR)
            else:
                text = gettext("%(address)s: the test message has arrived.")
                self.message_user(request, text % {"address": label})

    @admin.action(description=_("Create a new secret"), permissions=["change"])
    def make_new_secret(self, request: HttpRequest, queryset: QuerySet[NotificationTarget]) -> None:
        for target in queryset:
            try:
                secret = renew_secret(target.pk)
            except ServiceError as error:
                self.message_user(
                    request, f"{visible(target.address)}: {error}", level=messages.ERROR
                )
                continue
            self.log_change(request, target, "A new secret was created.")
            self._show(request, target, secret)


@admin.register(Notification)
class NotificationAdmin(SealedAdmin):
    """Messages are read-only. A message that was given up can be sent again."""

    readonly_fields = (
        "id",
        "target",
        "type",
        "about",
        "state",
        "attempts",
        "next_attempt_at",
        "problem",
        "created_at",
        "delivered_at",
    )
    fields = readonly_fields
    list_display = [
        "id",
        "target",
        "type",
        "about",
        "state",
        "attempts",
        "problem",
        "created_at",
    ]
    list_filter = ["status", "target", "created_at"]
    list_select_related = ["target"]
    search_fields = ["^id", "^subject_id"]
    search_help_text = _("The first characters of the id of a message or of its subject.")
    ordering = ["-id"]
    actions = ["try_again"]

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("vel_notifications.change_notification"))

    @admin.display(description=_("status"), ordering="status")
    def state(self, row: Notification) -> SafeString:
        return tag(_COLOURS[row.status], row.get_status_display())

    @admin.display(description=_("tells of"), ordering="subject_id")
    def about(self, row: Notification) -> SafeString | str:
        kind = kind_of(row.type)
        if kind is None or not kind.model:
            return visible(row.subject_id)
        page = f"admin:{kind.model.replace('.', '_').lower()}_change"
        try:
            url = reverse(page, args=[row.subject_id])
        except NoReverseMatch:
            return visible(row.subject_id)
        return format_html('<a href="{}">{}</a>', url, visible(row.subject_id))

    @admin.display(description=_("error"))
    def problem(self, row: Notification) -> str:
        return visible(row.error)

    @admin.action(description=_("Try the selected messages again"), permissions=["retry"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[Notification]) -> None:
        for row in self.chosen(request, queryset):
            try:
                retry_notification(row.pk)
            except ServiceError as error:
                self.report(request, f"{row.pk}: {error}", failed=True)
                continue
            self.log_change(request, row, "To be tried again.")
            self.report(request, gettext("%(id)s: a worker tries it again.") % {"id": row.pk})
