"""REST API for users and groups. A project that embeds Vel has its own instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import modelform_factory
from django.views.decorators.debug import sensitive_variables
from rest_framework import exceptions, serializers

from agents.doors.rest.managed.admin_rows import AdminRows
from agents.doors.rest.managed.fields import Field, moment_field
from agents.doors.rest.managed.objects import Managed, Own
from agents.doors.rest.managed.views import endpoints
from agents.doors.rest.serializers import Text
from agents.models import TokenScope
from agents.services.audit import record
from agents.services.errors import NotAllowed
from velproject.admin import AuditedGroupAdmin, AuditedUserAdmin

PASSWORD_CHARACTERS = 4_096
MOST_PERMISSIONS = 1_000


class PermissionsField(serializers.ListField):
    """A list of permissions as `app.codename`, sorted."""

    child = serializers.CharField()

    def to_representation(self, data: Any) -> list[str]:
        return sorted(f"{row.content_type.app_label}.{row.codename}" for row in data.all())


def _permissions(names: list[str]) -> QuerySet[Permission]:
    known = {
        f"{app}.{codename}": key
        for key, app, codename in Permission.objects.values_list(
            "pk", "content_type__app_label", "codename"
        )
    }
    unknown = [name[:100] for name in names if name not in known]
    if unknown:
        raise ValidationError(f"There is no permission {unknown[0]!r}.")
    return Permission.objects.filter(pk__in=[known[name] for name in names])


def _permissions_body(**options: Any) -> Field:
    return serializers.ListField(
        child=Text(max_length=200),
        max_length=MOST_PERMISSIONS,
        help_text='For example ["agents.change_agent"].',
        **options,
    )


def _password(**options: Any) -> Field:
    return Text(
        max_length=PASSWORD_CHARACTERS,
        allow_null=True,
        help_text="Null: the user cannot sign in with a password.",
        **options,
    )


def _typed_password(password: str | None) -> dict[str, str]:
    """Return `password` as the fields of Django's forms."""
    text = password or ""
    return {
        "usable_password": "true" if password is not None else "false",
        "password1": text,
        "password2": text,
    }


def _as_password(check: Callable[[], None]) -> None:
    """Call `check`, and report errors of Django's two password fields as errors of one field."""
    try:
        check()
    except exceptions.ValidationError as error:
        problems: dict[str, Any] = dict(error.detail)  # type: ignore[arg-type]  # of a form
        twice = problems.pop("password2", []) or problems.pop("password1", [])
        problems.pop("password1", None)
        if twice:
            problems["password"] = twice
        raise exceptions.ValidationError(problems) from None


@sensitive_variables()
def _create(door: AdminRows, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Create a user with the admin's form for new users, then set the other fields.

    Returns the user and the fields that are left.
    """
    if not door.admin.has_change_permission(door.http):
        raise NotAllowed("To create users, you also need the permission auth.change_user.")
    name = {"username": body.pop("username")}
    kind = door.admin.get_form(door.http, None, change=False)
    form = kind(data={**name, **_typed_password(body.pop("password", None))}, instance=User())
    _as_password(lambda: door.check(form))
    user, _ = door.save_form(form, change=False)
    if body:
        door.save(User.objects.get(pk=user.pk), body, change=True)
    return user, {}


@sensitive_variables()
def _change(door: AdminRows, user: User, body: dict[str, Any]) -> None:
    """Change the password of a user with the admin's password form."""
    if "password" not in body:
        return
    typed = _typed_password(body.pop("password"))
    form = door.admin.change_password_form(user, typed)
    _as_password(lambda: door.check(form))
    form.save()
    record("user.password_changed", user)


USERS = Managed(
    model=User,
    admin=AuditedUserAdmin,
    form=UserChangeForm,
    name="user",
    plural="users",
    rows="users",
    what="A person or program that signs in, unless `enabled` is false. Users with `is_staff` can "
    "use the admin and manage its objects over REST.",
    names={"is_active": "enabled"},
    left_out=("password", "last_login", "date_joined"),
    own={
        "permissions": Own(
            body=_permissions_body,
            form="user_permissions",
            find=_permissions,
            shown=PermissionsField(
                source="user_permissions", help_text="Without those of the user's groups."
            ),
        ),
        "password": Own(body=_password),
    },
    shown={
        "last_login": moment_field(allow_null=True),
        "created_at": moment_field(source="date_joined"),
    },
    prefetch=lambda: ("groups", "user_permissions__content_type"),
    filters={"enabled": "is_active", "group": "groups__name"},
    newest_first=False,
    scope=TokenScope.ADMIN,
    create=_create,
    change=_change,
    who={"create": "staff with `auth.add_user` and `auth.change_user`"},
)

GROUPS = Managed(
    model=Group,
    admin=AuditedGroupAdmin,
    form=modelform_factory(Group, fields=["name"]),
    name="group",
    plural="groups",
    rows="groups",
    what="A group of users, with the permissions that it gives them.",
    own={"permissions": Own(body=_permissions_body, find=_permissions, shown=PermissionsField())},
    prefetch=lambda: ("permissions__content_type",),
    newest_first=False,
    scope=TokenScope.ADMIN,
)

OBJECTS = [USERS, GROUPS]
urlpatterns = [*endpoints(USERS), *endpoints(GROUPS)]
