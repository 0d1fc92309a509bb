"""Functions shared by the endpoints of all triggers."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.managed.admin_rows import may_see_in_admin, rows_in_admin
from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import AgentField, PageQuery, Text, read_query
from agents.models import ThreadPolicy, Trigger
from agents.selectors.starters import starters
from agents.selectors.visible import of_agent
from agents.services.errors import NotFound
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS, find_agent
from agents.services.tokens import NAME_CHARACTERS

T = TypeVar("T", bound=Trigger)
M = TypeVar("M", bound=Model)


def list_page(request: Request, rows: QuerySet[T], show: Callable[[T], Any]) -> Response:
    """Return a page of triggers, newest first, by the query of `TriggerListQuery`.

    Raises `NotAllowed` for `of=all` without the permission of the admin.
    """
    query = read_query(TriggerListQuery, request)
    if query["of"] == "all":
        rows = rows_in_admin(request, rows.model)
    found = rows.filter(condition_of(query)).select_related("agent", "owner")
    return _newest_first(found, show, query)


def records_page(request: Request, rows: QuerySet[M], show: Callable[[M], Any]) -> Response:
    """Return a page of one trigger's records, newest first, by the query of `PageQuery`."""
    return _newest_first(rows, show, read_query(PageQuery, request))


def own(request: Request, rows: QuerySet[T], row_id: str, what: str) -> T:
    """Return one of a person's own `rows`, or a row that they may see in the admin.

    Services check who may change it. Raises `NotFound` with the noun `what`.
    """
    found = rows.select_related("agent", "owner").filter(pk=row_id).first()
    if found is None and may_see_in_admin(request, rows.model):
        others = rows_in_admin(request, rows.model)
        found = others.select_related("agent", "owner").filter(pk=row_id).first()
    if found is None:
        raise NotFound(f"You have no {what} {row_id!r}.")
    return found


def with_body(trigger: T, body: dict[str, Any], user: AbstractBaseUser) -> T:
    """Set the fields of a validated `body` on `trigger`. Raises `NotFound` for the agent."""
    if "agent" in body:
        trigger.agent = find_agent(body.pop("agent"), user)
    if "enabled" in body:
        trigger.is_enabled = body.pop("enabled")
    for name, value in body.items():
        setattr(trigger, name, value)
    return trigger


def _newest_first(rows: QuerySet[M], show: Callable[[M], Any], query: dict[str, Any]) -> Response:
    return page_of(
        rows, show, by="id", descending=True, cursor=query.get("cursor"), limit=query["limit"]
    )


def stamp(**options: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC, **options)


def name_field(**options: Any) -> Text:
    return Text(max_length=NAME_CHARACTERS, **options)


def message_field(**options: Any) -> Text:
    return Text(max_length=MESSAGE_CHARACTERS, **options)


def thread_policy_field(**options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=ThreadPolicy.values, **options)


class TriggerListQuery(PageQuery):
    agent = AgentField(required=False)
    enabled = serializers.ChoiceField(choices=["true", "false"], required=False)
    of = serializers.ChoiceField(
        choices=["me", "all"],
        default="me",
        help_text="`all`: also those of others, for staff who may view them in the admin.",
    )


class StartedByShape(serializers.Serializer[object]):
    """The origin of a run. `kind` is `person`, `schedule`, `hook` or `agent`.

    `id` and `name` are those of the trigger, null if there is no trigger or it was removed.
    """

    kind = serializers.ChoiceField(choices=starters())
    id = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)


def condition_of(query: dict[str, Any]) -> Q:
    """Return the filter of a query."""
    found = Q()
    if "agent" in query:
        found &= of_agent("agent", query["agent"])
    if "enabled" in query:
        found &= Q(is_enabled=query["enabled"] == "true")
    return found
