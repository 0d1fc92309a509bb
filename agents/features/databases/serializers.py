"""Serializers of database connections, without addresses and secrets."""

from __future__ import annotations

import datetime

from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery
from agents.features.databases.models import DatabaseConnection

DATABASE_ORDER = {"name": "name"}


class DatabaseListQuery(PageQuery):
    ordering = ordering("name")


class DatabaseShape(serializers.Serializer[DatabaseConnection]):
    """`agents` are the slugs of its agents that you may use."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    dialect = serializers.CharField()
    # A declared field is removed from the class, so it does not hide `Field.read_only`.
    read_only = serializers.SerializerMethodField()  # type: ignore[assignment]
    agents = serializers.SerializerMethodField()

    def get_read_only(self, row: DatabaseConnection) -> bool:
        return not row.allow_writes

    def get_agents(self, row: DatabaseConnection) -> list[str]:
        usable: set[str] = self.context["agents"]
        return sorted(agent.slug for agent in row.agents.all() if agent.pk in usable)


class LimitsShape(serializers.Serializer[DatabaseConnection]):
    statement_seconds = serializers.FloatField()
    max_rows = serializers.IntegerField()
    max_bytes = serializers.IntegerField()
    hidden_columns = serializers.ListField(child=serializers.CharField())
    allow_privileged = serializers.BooleanField()
    allow_routines = serializers.BooleanField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    updated_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)


class OperatorsDatabaseShape(DatabaseShape):
    """`limits` is null for people who only use it."""

    limits = LimitsShape(source="*", allow_null=True)
