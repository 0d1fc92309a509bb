"""Admin pages for users and groups. The audit log records each change."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from agents.doors.admin.journal import JournalAdmin
from agents.services.audit import changes_between, record


class Audited(admin.ModelAdmin):
    """Writes an audit entry in the same transaction as each save and deletion."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        request._vel_before = _state(obj) if change else None  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        before = request._vel_before  # type: ignore[attr-defined]
        changes = changes_between(before, _state(form.instance) or {})
        word = "created" if before is None else "changed"
        if changes:
            record(f"{form.instance._meta.model_name}.{word}", form.instance, changes=changes)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            self._record_removal(obj)
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            for row in queryset:
                self._record_removal(row)
            super().delete_queryset(request, queryset)

    def _record_removal(self, row: models.Model) -> None:
        changes = {name: (value, None) for name, value in (_state(row) or {}).items()}
        record(f"{row._meta.model_name}.deleted", row, changes=changes)


def _state(row: models.Model) -> dict[str, object] | None:
    """Return the stored values of a user or group. Of a password, only whether it is set."""
    stored = type(row)._default_manager.filter(pk=row.pk).first()
    if isinstance(stored, User):
        return {
            "username": stored.username,
            "email": stored.email,
            "is_active": stored.is_active,
            "is_staff": stored.is_staff,
            "is_superuser": stored.is_superuser,
            "password": "(secret)" if stored.has_usable_password() else "none",
            "groups": sorted(stored.groups.values_list("name", flat=True)),
            "permissions": _names(stored.user_permissions.all()),
        }
    if isinstance(stored, Group):
        return {"name": stored.name, "permissions": _names(stored.permissions.all())}
    return None


def _names(permissions: QuerySet[Any]) -> list[str]:
    names = permissions.values_list("content_type__app_label", "codename")
    return sorted(f"{app}.{codename}" for app, codename in names)


class Grants(forms.ModelForm):
    """Form for permissions, in which users can give only permissions that they have themselves."""

    by: Any = None

    def clean(self) -> dict[str, Any] | None:
        data = super().clean()
        if self.by is None or self.by.is_superuser or data is None:
            return data
        held = self.by.get_all_permissions()
        for name in ("user_permissions", "permissions"):
            if name in data:
                missing = set(_names(data[name])) - held - self._has(name)
                if missing:
                    text = gettext("You lack these permissions: %(permissions)s.")
                    self.add_error(name, text % {"permissions": ", ".join(sorted(missing))})
        if "groups" in data:
            present = set() if self.instance.pk is None else set(self.instance.groups.all())
            for group in set(data["groups"]) - present:
                if set(_names(group.permissions.all())) - held:
                    text = gettext("The group %(group)s has permissions that you lack.")
                    self.add_error("groups", text % {"group": group})
        return data

    def _has(self, name: str) -> set[str]:
        """Return the permissions that the user or group already has."""
        stored = self.instance.pk is not None
        return set(_names(getattr(self.instance, name).all())) if stored else set()


class GrantedUserForm(Grants, UserChangeForm):
    """Django's form for users, with the restriction of `Grants`."""


class AuditedUserAdmin(Audited, UserAdmin):
    """Django's user admin with the audit log. Only superusers can manage superusers."""

    form = GrantedUserForm

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form = super().get_form(request, *args, **kwargs)
        form.by = request.user  # type: ignore[attr-defined]  # of `Grants`
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fixed = [] if request.user.is_superuser else ["is_superuser"]
        return [*super().get_readonly_fields(request, obj), *fixed]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return Django's result, without the permission check for rows that belong to the user.

        They are deleted only together with the user.
        """
        shown, counts, needed, protected = super().get_deleted_objects(objs, request)
        journals = {
            model._meta.verbose_name
            for model, page in self.admin_site._registry.items()
            if isinstance(page, JournalAdmin) and page.goes_with_user
        }
        return shown, counts, needed - journals, protected

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        # The password page saves the user without `save_model`, and calls only this method.
        match = request.resolver_match
        if match is not None and match.url_name == "auth_user_password_change":
            record("user.password_changed", obj)
        return super().log_change(request, obj, message)


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    return user is None or not user.is_superuser or bool(request.user.is_superuser)


class AuditedGroupAdmin(Audited, GroupAdmin):
    """Django's group admin with the audit log."""

    form = Grants

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form = super().get_form(request, *args, **kwargs)
        form.by = request.user  # type: ignore[attr-defined]  # of `Grants`
        return form


admin.site.unregister([User, Group])
admin.site.register(User, AuditedUserAdmin)
admin.site.register(Group, AuditedGroupAdmin)
