"""A person's own webhooks that start runs. `door` receives their requests.

Of tokens, only those with the scope `admin` can create, change and rotate them: a hook stays active
after the token that created it is revoked, so another stolen token must not create one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import idempotent_without
from agents.doors.rest.managed.coverage import RestObject
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, Page, operation
from agents.doors.rest.serializers import PageQuery, read_body
from agents.doors.rest.triggers import TriggerListQuery, list_page, own, records_page, with_body
from agents.features.inbound_webhooks.actions import (
    DayBudget,
    budget_of,
    change_inbound_webhook,
    create_inbound_webhook,
    delete_inbound_webhook,
    enable_inbound_webhook,
    rotate_secret,
)
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.inbound_webhooks.serializers import (
    DeliveryShape,
    HookBody,
    HookShape,
    NewHookBody,
    NewSecretShape,
    RotateBody,
)
from agents.models import TokenScope
from agents.selectors.visible import Person

_LIMITS = ("max_tokens_a_day", "max_cost_a_day")


class InboundWebhooks(ApiView):
    """`GET /hooks`: newest first. `POST /hooks`"""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.ADMIN}

    @operation(
        "list_hooks",
        "List webhooks that start runs",
        query=TriggerListQuery,
        answer=Page(HookShape),
    )
    def get(self, request: Request) -> Response:
        rows = inbound_webhooks_for(person(request))
        return list_page(request, rows, HookShape().to_representation)

    @method_decorator(sensitive_variables())
    @operation(
        "create_hook",
        "Create a webhook that starts runs",
        body=NewHookBody,
        answers={201: NewSecretShape},
        errors=(404, 409),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    @idempotent_without("secret")
    def post(self, request: Request) -> Response:
        user = person(request)
        body = read_body(NewHookBody, request)
        secret = body.pop("secret", "")
        budget = _budget(None, body)
        hook = with_body(InboundWebhook(owner_id=user.pk), body, user)
        plain = create_inbound_webhook(hook, by=user, budget=budget, secret=secret)
        shown = NewSecretShape({"hook": hook, "secret": plain}).data
        return Response(shown, status=201, headers={"Location": f"{request.path}/{hook.pk}"})


class OneInboundWebhook(ApiView):
    """`GET`, `PATCH` and `DELETE /hooks/{id}`"""

    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PATCH": TokenScope.ADMIN,
        "DELETE": TokenScope.ADMIN,
    }

    @operation("get_hook", "Read a webhook", answer=HookShape)
    def get(self, request: Request, hook_id: str) -> Response:
        return Response(HookShape(_own(request, hook_id)).data)

    @operation("change_hook", "Change a webhook", body=HookBody, answer=HookShape)
    def patch(self, request: Request, hook_id: str) -> Response:
        user = person(request)
        hook = _own(request, hook_id)
        body = read_body(HookBody, request)
        if set(body) == {"enabled"}:  # also if its agent is no longer available to the person
            return Response(
                HookShape(enable_inbound_webhook(hook.pk, body["enabled"], by=user)).data
            )
        budget = _budget(hook, body)
        return Response(
            HookShape(
                change_inbound_webhook(with_body(hook, body, user), by=user, budget=budget)
            ).data
        )

    @operation("delete_hook", "Delete a webhook", answers={204: None})
    def delete(self, request: Request, hook_id: str) -> Response:
        delete_inbound_webhook(_own(request, hook_id).pk, by=person(request))
        return Response(status=204)


class RotateInboundWebhook(ApiView):
    """`POST /hooks/{id}/rotate`: a new secret; the former one stays valid for some time."""

    scopes: ClassVar = {"POST": TokenScope.ADMIN}

    @method_decorator(sensitive_variables())
    @operation("rotate_hook", "Give a webhook a new secret", body=RotateBody, answer=NewSecretShape)
    def post(self, request: Request, hook_id: str) -> Response:
        body = read_body(RotateBody, request)
        hook = _own(request, hook_id)
        plain = rotate_secret(
            hook.pk, by=person(request), secret=body.get("secret", ""), overlap=body["overlap"]
        )
        return Response(NewSecretShape({"hook": _own(request, hook.pk), "secret": plain}).data)


class Deliveries(ApiView):
    """`GET /hooks/{id}/deliveries`: requests with a valid signature, newest first."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_deliveries",
        "List the requests to a webhook and their results",
        query=PageQuery,
        answer=Page(DeliveryShape),
    )
    def get(self, request: Request, hook_id: str) -> Response:
        rows = _own(request, hook_id).deliveries.all()
        return records_page(request, rows, DeliveryShape().to_representation)


def _own(request: Request, hook_id: str) -> InboundWebhook:
    return own(request, inbound_webhooks_for(person(request)), hook_id, "webhook")


def _budget(hook: InboundWebhook | None, body: dict[str, Any]) -> DayBudget | None:
    """Take the limits out of `body`; an absent limit does not change. None: both are absent."""
    named = {name: body.pop(name) for name in _LIMITS if name in body}
    if not named:
        return None
    row = budget_of(hook) if hook is not None else None
    had = (row.max_tokens, row.max_cost) if row is not None else (None, None)
    return DayBudget(named.get(_LIMITS[0], had[0]), named.get(_LIMITS[1], had[1]))


_READ = "its owner; others: staff with `vel_inbound_webhooks.view_inboundwebhook`"
_STOP = "its owner; only to pause or delete: `vel_inbound_webhooks.change_inboundwebhook`"

OBJECTS = [
    RestObject(
        model=InboundWebhook,
        path="hooks",
        list=("list_hooks", _READ),
        read=("get_hook", _READ),
        create=("create_hook", "everybody, for an agent that they may use"),
        change=("change_hook", _STOP),
        delete=("delete_hook", _STOP),
        further={"rotate_hook": "its owner"},
        actions={"new_secret": "rotate_hook", "pause": "change_hook", "go_on": "change_hook"},
        scope=TokenScope.ADMIN.value,
    )
]

urlpatterns = [
    path("hooks", InboundWebhooks.as_view(), name="hooks"),
    path("hooks/<opaque_id:hook_id>", OneInboundWebhook.as_view(), name="hook"),
    path("hooks/<opaque_id:hook_id>/rotate", RotateInboundWebhook.as_view(), name="hook-rotate"),
    path("hooks/<opaque_id:hook_id>/deliveries", Deliveries.as_view(), name="deliveries"),
]


def inbound_webhooks_for(user: Person) -> QuerySet[InboundWebhook]:
    """Return the webhooks of `user` that start runs. Permissions give no access to others."""
    if not user.is_authenticated:
        return InboundWebhook.objects.none()
    return InboundWebhook.objects.filter(owner=user.pk)
