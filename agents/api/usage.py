"""Endpoint for usage by day, agent, user and model."""

from __future__ import annotations

from dataclasses import asdict
from typing import ClassVar

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.models import TokenScope
from agents.providers.prices import dollars
from agents.selectors.usage import usage_by_day, zone_of

MAX_DAYS = 366


class UsageQuery(StrictSerializer):
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, default=30)


class UsageDayShape(serializers.Serializer[object]):
    """The usage of one day, user, agent and model. `cost` is in US dollars; null if unknown."""

    day = serializers.DateField()
    agent = serializers.CharField()
    user = serializers.CharField()
    model = serializers.CharField()
    calls = serializers.IntegerField()
    tokens = serializers.IntegerField()
    cost = serializers.CharField(allow_null=True)


class UsageDaysShape(serializers.Serializer[object]):
    results = UsageDayShape(many=True)


class Usage(ApiView):
    """The endpoint `GET /usage?days=30`: the use by runs that the caller can read.

    Deleted runs are included. There is a row for each day, agent, user and model, the latest day
    first.
    """

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_usage", "List the usage by day", query=UsageQuery, answer=UsageDaysShape)
    def get(self, request: Request) -> Response:
        days = read_query(UsageQuery, request)["days"]
        rows = usage_by_day(person(request), days, zone_of(settings.TIME_ZONE))
        results = []
        for row in rows:
            fields = asdict(row)
            cost = fields.pop("microusd")
            fields["day"] = row.day.isoformat()
            results.append({**fields, "cost": None if cost is None else dollars(cost)})
        return Response({"results": results})
