"""Functions shared by the endpoints of all triggers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Model, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import PageQuery, read_query
from agents.doors.rest.trigger_serializers import TriggerListQuery, lookups_of
from agents.models import Trigger
from agents.services.errors import NotFound
from agents.services.runs.trigger_rights import find_agent

T = TypeVar("T", bound=Trigger)
M = TypeVar("M", bound=Model)


def list_page(request: Request, rows: QuerySet[T], show: Callable[[T], Any]) -> Response:
    """Return a page of triggers, newest first, by the query of `TriggerListQuery`."""
    query = read_query(TriggerListQuery, request)
    found = rows.filter(**lookups_of(query)).select_related("agent")
    return _newest_first(found, show, query)


def records_page(request: Request, rows: QuerySet[M], show: Callable[[M], Any]) -> Response:
    """Return a page of one trigger's records, newest first, by the query of `PageQuery`."""
    return _newest_first(rows, show, read_query(PageQuery, request))


def own(rows: QuerySet[T], row_id: str, what: str) -> T:
    """Return one of a person's own `rows`. Raises `NotFound` with the noun `what`."""
    found = rows.select_related("agent", "owner").filter(pk=row_id).first()
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
