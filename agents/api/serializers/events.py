"""Serializers for the event log."""

from __future__ import annotations

from rest_framework import serializers

from agents.doors.rest.serializers import StrictSerializer
from agents.events.read import MAX_SEQ


class EventsQuery(StrictSerializer):
    after = serializers.IntegerField(min_value=0, max_value=MAX_SEQ, default=0)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100)


class EventShape(serializers.Serializer[object]):
    """An event. The fields of `data` depend on the type."""

    seq = serializers.IntegerField()
    type = serializers.CharField()
    ts = serializers.DateTimeField()
    # Serializers remove declared fields from the class, so this does not hide `Serializer.data`.
    data = serializers.DictField()  # type: ignore[assignment]


class EventsShape(serializers.Serializer[object]):
    """A part of the event log. For the next part, send `after=next_after`."""

    results = EventShape(many=True)
    next_after = serializers.IntegerField()
