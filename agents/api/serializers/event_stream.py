"""Serializers for the part of an event log to follow, with or without subagents."""

from __future__ import annotations

import re
from typing import ClassVar

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import StrictSerializer
from agents.events.read import MAX_SEQ
from agents.events.tree import MAX_POSITIONS

_POSITION = re.compile(r"([0-9a-z]{1,26}):([0-9]{1,19})")


class Positions(serializers.Field[dict[str, int], object, dict[str, int], object]):
    """The last known seq of each run, as `ID:N,ID:N`."""

    json_schema: ClassVar = {
        "type": "string",
        "pattern": f"^{_POSITION.pattern}(,{_POSITION.pattern})*$",
    }
    default_error_messages = {"invalid": "Write it as ID:N,ID:N with the last seq of each run."}

    def to_internal_value(self, data: object) -> dict[str, int]:
        parts = str(data).split(",")
        found = [_POSITION.fullmatch(part) for part in parts[: MAX_POSITIONS + 1]]
        known = {match[1]: int(match[2]) for match in found if match}
        if len(known) != len(parts) or max(known.values()) > MAX_SEQ:
            raise ValidationError(self.error_messages["invalid"])
        return known


class EventStreamQuery(StrictSerializer):
    after = serializers.IntegerField(min_value=0, max_value=MAX_SEQ, default=0)
    tree = serializers.ChoiceField(choices=["all", "brief"], default="")
    at = Positions(default=dict)
