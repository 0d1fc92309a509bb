"""The base of the admin pages of triggers: owners and permissions."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, person
from agents.hidden_text import visible
from agents.services.errors import ServiceError


class TriggerForm(forms.ModelForm):
    """A trigger. Its owner is the current user; superusers can select another owner."""

    owner_default: Any = None
    kept: ClassVar[tuple[str, ...]] = ("owner",)
    """Fields that an edit does not change."""
    not_stored: ClassVar[tuple[str, ...]] = ()
    """Form fields that are not fields of the row."""

    def check_row(self, row: Any) -> None:
        """Raise `ServiceError` for values that cannot be stored."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if self.errors:
            return data
        stored = {name: value for name, value in data.items() if name not in self.not_stored}
        row = self._meta.model(**{"owner": self.owner_default, **stored})
        if self.instance.owner_id is not None:
            for name in self.kept:
                setattr(row, name, getattr(self.instance, name))
        try:
            self.check_row(row)
        except ServiceError as error:
            raise ValidationError(error.message) from None
        return data


class TriggerAdmin(SealedAdmin):
    """The admin of triggers. It saves through services. Operators can pause and delete all."""

    list_select_related = ["owner", "agent"]
    search_fields = ["name", "^id", f"owner__{get_user_model().USERNAME_FIELD}"]
    ordering = ["-id"]

    def enable(self, row: Any, enabled: bool, request: HttpRequest) -> None:
        raise NotImplementedError

    def remove(self, row: Any, request: HttpRequest) -> None:
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Return whether the user has the permission, and is the owner or a superuser.

        A trigger acts as its owner.
        """
        if not admin.ModelAdmin.has_change_permission(self, request, obj):
            return False
        owner = getattr(obj, "owner_id", None)
        return obj is None or request.user.is_superuser or owner == request.user.pk

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj) and (
            admin.ModelAdmin.has_change_permission(self, request, obj)
        )

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form = super().get_form(request, *args, **kwargs)
        form.owner_default = request.user  # type: ignore[attr-defined]  # the form's own
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": request.user.pk}

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.remove(obj, request)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.remove(row, request)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Skip the permission check for the trigger's records, which are deleted with it."""
        deleted, counts, _, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, row: Any) -> str:
        return visible(row.name)

    @admin.action(description=_("Pause"), permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._enable(request, queryset, enabled=False)

    @admin.action(description=_("Resume"), permissions=["change"])
    def go_on(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._enable(request, queryset, enabled=True)

    def _enable(self, request: HttpRequest, queryset: QuerySet[Any], *, enabled: bool) -> None:
        for row in self.chosen(request, queryset):
            try:
                self.enable(row, enabled, request)
            except ServiceError as error:
                self.report(request, f"{visible(row.name)}: {error.message}", failed=True)
                continue
            text = gettext("%(name)s: resumed.") if enabled else gettext("%(name)s: paused.")
            self.report(request, text % {"name": visible(row.name)})

    def owned(self, request: HttpRequest, row: Any) -> Any:
        """Set the owner of a new row to the current user, unless a superuser selected one."""
        if row.owner_id is None:
            row.owner_id = person(request).pk
        return row
