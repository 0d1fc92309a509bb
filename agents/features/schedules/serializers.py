"""Serializers of schedules."""

from __future__ import annotations

from rest_framework import serializers

from agents.doors.rest.list_queries import moment
from agents.doors.rest.serializers import AgentField, Flag, StrictSerializer, Text
from agents.doors.rest.triggers import (
    message_field,
    name_field,
    stamp,
    thread_policy_field,
)
from agents.features.schedules.models import FiringOutcome, Overlap, Schedule, ScheduleFiring
from agents.features.schedules.times import LONGEST, SHORTEST
from agents.models import ThreadPolicy


def _overlap(**options: object) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=Overlap.values, **options)  # type: ignore[arg-type]


class NewScheduleBody(StrictSerializer):
    """Either `cron` or `interval_seconds`."""

    name = name_field()
    agent = AgentField()
    message = message_field()
    cron = Text(max_length=100, default="", allow_blank=True)
    interval_seconds = serializers.IntegerField(
        min_value=SHORTEST, max_value=LONGEST, default=None, allow_null=True
    )
    time_zone = Text(max_length=64, default="UTC")
    thread_policy = thread_policy_field(default=ThreadPolicy.NEW)
    overlap = _overlap(default=Overlap.SKIP)
    ends_at = moment(allow_null=True)
    enabled = Flag(default=True)


class ScheduleBody(StrictSerializer):
    """Absent fields do not change."""

    name = name_field(required=False)
    agent = AgentField(required=False)
    message = message_field(required=False)
    cron = Text(max_length=100, required=False, allow_blank=True)
    interval_seconds = serializers.IntegerField(
        min_value=SHORTEST, max_value=LONGEST, required=False, allow_null=True
    )
    time_zone = Text(max_length=64, required=False)
    thread_policy = thread_policy_field(required=False)
    overlap = _overlap(required=False)
    ends_at = moment(allow_null=True)
    enabled = Flag(required=False)


class ScheduleShape(serializers.Serializer[Schedule]):
    """`due_at` is the next time, null while the schedule is paused or after its end."""

    id = serializers.CharField()
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.get_username")
    agent = serializers.CharField(source="agent.slug")
    message = serializers.CharField()
    cron = serializers.CharField()
    interval_seconds = serializers.IntegerField(allow_null=True)
    time_zone = serializers.CharField()
    thread_policy = thread_policy_field()
    thread = serializers.CharField(source="thread_id", allow_null=True)
    overlap = _overlap()
    ends_at = stamp(allow_null=True)
    enabled = serializers.BooleanField(source="is_enabled")
    due_at = stamp(allow_null=True)
    created_at = stamp()


class FiringShape(serializers.Serializer[ScheduleFiring]):
    """`missed`: the number of earlier times that this one replaces."""

    id = serializers.IntegerField()
    due_at = stamp()
    outcome = serializers.ChoiceField(choices=FiringOutcome.values)
    reason = serializers.CharField()
    detail = serializers.CharField()
    missed = serializers.IntegerField()
    run = serializers.CharField(source="run_id", allow_null=True)
    created_at = stamp()


class StartedRunShape(serializers.Serializer[object]):
    run = serializers.CharField()
