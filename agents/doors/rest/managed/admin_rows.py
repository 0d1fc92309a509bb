"""Reading and changing rows through an admin class, with its permissions, form and audit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, ProtectedError, QuerySet
from django.db.models.deletion import RestrictedError
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from rest_framework import exceptions
from rest_framework.request import Request

from agents.doors.rest.base import person
from agents.doors.rest.managed.fields import Given, GivenWidget, find_named
from agents.doors.rest.managed.objects import Action, Managed
from agents.events.append import dump
from agents.services.errors import Conflict, NotAllowed, NotFound


class Stale(Conflict):
    """The object has changed since the state in `If-Match`."""

    code = "stale"
    http_status = 412


class _Unread:
    """Takes the messages of an admin class, which are for its pages."""

    def add(self, level: int, message: object, extra_tags: str = "") -> None:
        pass

    def update(self, response: object) -> None:
        pass


def entity_tag(managed: Managed, row: Any) -> str:
    """Return the entity tag of a row. Computed fields do not change it."""
    defined = dump([str(row.pk), dict(managed.definition(row).data)])
    return f'"{hashlib.sha256(defined.encode()).hexdigest()[:32]}"'


class AdminRows:
    """The rows of `managed` for the user of one request.

    Creating it raises `NotAllowed` for users who are not staff.
    """

    def __init__(self, managed: Managed, request: Request) -> None:
        self.managed = managed
        self.user: AbstractBaseUser = person(request)
        # The methods of an admin class take Django's request; REST framework has set its user.
        self.http: HttpRequest = request._request
        registered = admin.site._registry.get(managed.model)
        if registered is None and managed.admin is None:
            raise NotFound(f"This server has no admin of {managed.title} objects.")
        self.admin: Any = registered or managed.admin(managed.model, admin.site)  # type: ignore[misc]
        if not admin.site.has_permission(self.http):
            raise NotAllowed(f"Only staff can manage {managed.title} objects, as in the admin.")

    # Reading

    def visible(self) -> QuerySet[Any]:
        """Return the rows that the user may see. Raises `NotAllowed`."""
        if not self.admin.has_view_permission(self.http):
            raise NotAllowed(f"This needs the permission {self._permission('view')}.")
        rows: QuerySet[Any] = self.admin.get_queryset(self.http)
        related = self.admin.list_select_related
        if related and not isinstance(related, bool):
            rows = rows.select_related(*related)
        return rows.prefetch_related(*self.managed.prefetch())

    def searched(self, words: str, rows: QuerySet[Any]) -> QuerySet[Any]:
        found, may_repeat = self.admin.get_search_results(self.http, rows, words)
        return rows.filter(pk__in=found.order_by().values("pk")) if may_repeat else found

    def find(self, key: str) -> Any:
        """Return one row. Raises `NotFound`, also for a row that the user may not see."""
        try:
            row = self.visible().filter(pk=key).first()
        except (ValueError, ValidationError):
            row = None
        if row is None or not self.admin.has_view_permission(self.http, row):
            raise NotFound(f"There is no {self.managed.title} {key!r} that you may see.")
        return row

    def show(self, row: Any) -> dict[str, Any]:
        """Return the fields of a row."""
        return dict(self.managed.shape(row).data)

    def answer(self, row: Any, once: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the response for a row.

        `once` has the fields that are shown only in the response to a change; None for other
        responses.
        """
        show = self.managed.show
        data = self.show(row) if show is None else dict(show(row, self.user))
        if once is not None:
            data |= {name: once.get(name) for name in self.managed.once}
        return data

    # Changing

    @sensitive_variables()
    def create(self, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Create a row. Return it and the fields that are shown only once.

        Raises `NotAllowed` and `ValidationError` of REST framework.
        """
        if not self.admin.has_add_permission(self.http):
            raise NotAllowed(f"This needs the permission {self._permission('add')}.")
        with self._quiet(), transaction.atomic():
            if self.managed.create is not None:
                return self.managed.create(self, body)
            return self.save(self.managed.model(), body, change=False)

    @sensitive_variables()
    def change(self, key: str, body: dict[str, Any], matches: str) -> tuple[Any, dict[str, Any]]:
        with self._quiet(), transaction.atomic():
            row = self._locked(key, matches)
            if not self.admin.has_change_permission(self.http, row):
                raise NotAllowed(self._refused("change", row))
            if self.managed.change is not None:
                self.managed.change(self, row, body)
            _, once = self.save(row, body, change=True)
        return self.find(key), once

    def delete(self, key: str, matches: str) -> None:
        with self._quiet(), transaction.atomic():
            row = self._locked(key, matches)
            if not self.admin.has_delete_permission(self.http, row):
                raise NotAllowed(self._refused("delete", row))
            _, _, needed, protected = self.admin.get_deleted_objects([row], self.http)
            if needed:
                raise NotAllowed(
                    f"Deleting this also deletes other objects ({', '.join(map(str, needed))}), "
                    "which you have no permission to delete."
                )
            if protected:
                raise Conflict(f"This is in use: {_plain(protected[0])}", code="in_use")
            same = self.managed.model._default_manager.filter(pk=row.pk)
            if apps.is_installed("django.contrib.admin"):
                self.admin.log_deletions(self.http, same)
            try:
                self.admin.delete_model(self.http, row)
            except (ProtectedError, RestrictedError):
                raise Conflict(
                    "This is in use: other objects refer to it.", code="in_use"
                ) from None

    def act(self, key: str, action: Action) -> tuple[Any, Mapping[str, Any]]:
        """Perform an action on a row. Return the row and additional fields of the response.

        Raises `NotFound`, `NotAllowed`, and the errors of the action.
        """
        row = self.find(key)
        may = getattr(self.admin, f"has_{action.may}_permission")
        allowed = may(self.http, row) if action.may in ("change", "delete") else may(self.http)
        if not allowed:
            raise NotAllowed(self._refused("change", row))
        extra = action.call(row, self.user) or {}
        return row, extra

    def _locked(self, key: str, matches: str) -> Any:
        """Lock a row, and check that it is the one that the user has read."""
        rows = self.managed.model._base_manager.select_for_update(no_key=True)
        self.find(key)
        list(rows.filter(pk=key).values_list("pk", flat=True))
        row = self.find(key)
        if matches and matches.strip() != "*" and entity_tag(self.managed, row) not in matches:
            raise Stale("It has changed since you read it: read it again.")
        return row

    @sensitive_variables()
    def save(self, row: Any, body: dict[str, Any], *, change: bool) -> tuple[Any, dict[str, Any]]:
        """Save a row with a checked body. Return it and the fields that are shown only once."""
        fixed = row if change else None
        kind = self.admin.get_form(self.http, fixed, change=change)
        self._refuse_fixed(row, body, kind, change)
        return self.save_form(self._bound(kind, row, body, change), change=change)

    @sensitive_variables()
    def save_form(self, form: Any, *, change: bool) -> tuple[Any, dict[str, Any]]:
        """Save a form of the admin class. Raises `ValidationError` of REST framework."""
        self.check(form)
        saved = self.admin.save_form(self.http, form, change=change)
        if self.managed.save is not None:
            extra = dict(self.managed.save(self.admin, self.http, form, change))
        else:
            self.admin.save_model(self.http, saved, form, change)
            self.admin.save_related(self.http, form, [], change)
            extra = {}
        self._log(saved, form, change)
        return saved, extra

    def check(self, form: Any) -> None:
        """Raise `ValidationError` of REST framework if the form is not valid."""
        if not form.is_valid():
            raise exceptions.ValidationError(self._problems(form))

    def _refuse_fixed(self, row: Any, body: dict[str, Any], kind: Any, change: bool) -> None:
        """Refuse fields that this user cannot set here, unless the value is the present one."""
        present = self.show(row) if change else {}
        offered = {self.managed.wire(name) for name in kind.base_fields}
        fixed = [
            name
            for name in body
            if name not in offered and not (name in present and present[name] == body[name])
        ]
        if fixed:
            raise NotAllowed(
                f"You cannot set {', '.join(fixed)} here: "
                + (
                    "it is fixed, or needs a further permission."
                    if change
                    else "it needs a further permission."
                ),
                code="field_not_allowed",
            )

    @sensitive_variables()
    def _bound(self, kind: Any, row: Any, body: dict[str, Any], change: bool) -> Any:
        """Return the form, as the page would submit it with these fields changed."""
        initial = {} if change else self.admin.get_changeform_initial_data(self.http)
        plain = kind(instance=row, initial=initial)
        data: dict[str, Any] = {}
        given: dict[str, Any] = {}
        for name, each in plain.fields.items():
            wire, own = self.managed.wire(name), self.managed.own.get(self.managed.wire(name))
            if wire not in body:
                data[name] = plain[name].value()
                if isinstance(each, forms.SplitDateTimeField):
                    given[name] = plain.initial.get(name)
            elif own is not None:
                given[name] = self._find(wire, own.find, body[wire])
            elif isinstance(each, forms.ModelChoiceField):
                data[name] = self._keys(wire, each, body[wire])
            elif isinstance(each, forms.DateTimeField | forms.SplitDateTimeField):
                given[name] = body[wire]
            else:
                data[name] = _as_typed(each, body[wire])
        form = kind(data={**data, **given}, instance=row, initial=initial)
        for name in given:
            form.fields[name] = Given(required=False, widget=GivenWidget())
        return form

    def _find(self, wire: str, find: Any, value: Any) -> Any:
        try:
            return value if find is None else find(value)
        except ValidationError as error:
            raise exceptions.ValidationError({wire: error.messages}) from None

    def _keys(self, wire: str, each: forms.ModelChoiceField, value: Any) -> Any:
        rows: Any = each.queryset
        what = str(rows.model._meta.verbose_name)
        if value is None:
            return ""
        many = isinstance(each, forms.ModelMultipleChoiceField)
        try:
            keys = find_named(rows, value if many else [value], what)
        except ValidationError as error:
            raise exceptions.ValidationError({wire: error.messages}) from None
        except ValueError:
            raise exceptions.ValidationError({wire: [f"There is no {what} {value!r}."]}) from None
        return keys if many else keys[0]

    def _problems(self, form: Any) -> dict[str, list[str]]:
        problems: dict[str, list[str]] = {}
        for name, errors in form.errors.items():
            wire = "non_field_errors" if name == "__all__" else self.managed.wire(name)
            problems.setdefault(wire, []).extend(str(each) for each in errors)
        return problems

    def _log(self, row: Model, form: Any, change: bool) -> None:
        """Write the entry for the history of the object in the admin."""
        if not apps.is_installed("django.contrib.admin"):
            return
        message = self.admin.construct_change_message(self.http, form, [], not change)
        write = self.admin.log_change if change else self.admin.log_addition
        write(self.http, row, message)

    def _permission(self, verb: str) -> str:
        meta = self.managed.model._meta
        return f"{meta.app_label}.{verb}_{meta.model_name}"

    def _refused(self, verb: str, row: Any) -> str:
        return (
            f"You cannot {verb} this {self.managed.title}. It requires the permission "
            f"{self._permission(verb)} and the admin's permissions for this object."
        )

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep messages of the admin class, which may contain secrets, out of the session."""
        shown = getattr(self.http, "_messages", None)
        self.http._messages = _Unread()  # type: ignore[attr-defined]
        try:
            yield
        finally:
            if shown is None:
                del self.http._messages  # type: ignore[attr-defined]
            else:
                self.http._messages = shown  # type: ignore[attr-defined]


def may_see_in_admin(request: Request, model: type[Model]) -> bool:
    """Return whether the user may see rows of others in the admin."""
    http, registered = request._request, admin.site._registry.get(model)
    return (
        registered is not None
        and bool(admin.site.has_permission(http))
        and bool(registered.has_view_permission(http))
    )


def rows_in_admin(request: Request, model: type[Model]) -> QuerySet[Any]:
    """Return the rows that the user may see in the admin. Raises `NotAllowed`."""
    if not may_see_in_admin(request, model):
        meta = model._meta
        raise NotAllowed(
            "Seeing objects of others requires staff status and the permission "
            f"{meta.app_label}.view_{meta.model_name}."
        )
    rows: QuerySet[Any] = admin.site._registry[model].get_queryset(request._request)
    return rows


def _as_typed(each: forms.Field, value: Any) -> Any:
    """Return a checked value as the form's field takes it."""
    if value is None:
        return ""
    prepared = each.prepare_value(value)
    return str(prepared) if isinstance(each, forms.DecimalField) else prepared


def _plain(text: object) -> str:
    return str(text)[:500]
