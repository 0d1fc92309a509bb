"""Every object of the admin can be managed by REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import RequestFactory

from agents.api.objects import OBJECTS
from agents.api.schema_document import api_document
from agents.doors.rest.managed.coverage import VERBS, RestObject, rest_objects
from agents.features.budgets.models import Budget, BudgetRequest
from tests.agents.api.rows import make_user

OTHERS = {"django_q"}
"""Apps of other packages. Their rows are hints for workers."""


def operation_ids() -> set[str]:
    paths = api_document()["paths"].values()
    return {said["operationId"] for item in paths for said in item.values()}


def gaps(registry: dict[Any, Any], objects: list[RestObject], request: Any) -> list[str]:
    """Return what the admin classes allow and the API lacks."""
    known, found = {each.model: each for each in objects}, []
    for model, shown in registry.items():
        if model._meta.app_label in OTHERS:
            continue
        name, each = model._meta.label, known.get(model)
        if each is None:
            found.append(f"{name} has no endpoint: list it in OBJECTS of an api module")
            continue
        allowed = {
            "list": shown.has_view_permission(request),
            "create": shown.has_add_permission(request),
            "change": shown.has_change_permission(request),
            "delete": shown.has_delete_permission(request),
        }
        found += [
            f"{name} cannot be managed by REST: {verb}"
            for verb, is_allowed in allowed.items()
            if is_allowed and getattr(each, verb) is None
        ]
        actions = set(shown.get_actions(request)) - {"delete_selected"}
        found += [
            f"{name} lacks its action {action}" for action in sorted(actions - {*each.actions})
        ]
    return found


def operations(each: RestObject) -> list[tuple[str, str]]:
    """Return the name of each operation and who may use it."""
    of_verbs = [getattr(each, verb) for verb in VERBS]
    return [*filter(None, of_verbs), *each.further.items()]


def superuser_request() -> Any:
    request = RequestFactory().get("/")
    request.user = make_user("root", superuser=True)
    return request


@pytest.mark.django_db
def test_every_admin_class_has_its_endpoints() -> None:
    assert gaps(admin.site._registry, rest_objects(OBJECTS), superuser_request()) == []


@pytest.mark.django_db
def test_a_new_admin_class_without_endpoints_is_found() -> None:
    class Plain(admin.ModelAdmin): ...

    class WithAction(admin.ModelAdmin):
        actions = ["double"]

        @admin.action(description="Double the limits")
        def double(self, request: Any, rows: Any) -> None: ...

    site = admin.AdminSite()
    site.register(BudgetRequest, Plain)
    site.register(Budget, WithAction)
    assert gaps(site._registry, rest_objects(OBJECTS), superuser_request()) == [
        "vel_budgets.BudgetRequest has no endpoint: list it in OBJECTS of an api module",
        "vel_budgets.Budget lacks its action double",
    ]


def test_the_declarations_name_operations_that_exist() -> None:
    named = set()
    for each in rest_objects(OBJECTS):
        named |= {name for name, _ in operations(each)} | {*each.actions.values()}
    assert named - operation_ids() == set()


@pytest.mark.django_db
def test_the_permissions_that_the_table_names_exist() -> None:
    known = {
        f"{app}.{codename}"
        for app, codename in Permission.objects.values_list("content_type__app_label", "codename")
    }
    named = {
        word
        for each in rest_objects(OBJECTS)
        for _, who in operations(each)
        for word in who.split("`")[1::2]
    }
    assert named - known == set()
