"""Serializers shared by the endpoints of all triggers."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers

from agents.doors.rest.serializers import PageQuery, Text
from agents.models import ThreadPolicy
from agents.selectors.starters import starters
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS
from agents.services.tokens import NAME_CHARACTERS


def stamp(**options: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC, **options)


def name_field(**options: Any) -> Text:
    return Text(max_length=NAME_CHARACTERS, **options)


def message_field(**options: Any) -> Text:
    return Text(max_length=MESSAGE_CHARACTERS, **options)


def thread_policy_field(**options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=ThreadPolicy.values, **options)


class TriggerListQuery(PageQuery):
    agent = Text(max_length=100, required=False)
    enabled = serializers.ChoiceField(choices=["true", "false"], required=False)


class StartedByShape(serializers.Serializer[object]):
    """What started a run. `kind` is `person`, `schedule`, `hook` or `agent`.

    `id` and `name` are those of the trigger, null if there is no trigger or it was removed.
    """

    kind = serializers.ChoiceField(choices=starters())
    id = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)


def lookups_of(query: dict[str, Any]) -> dict[str, Any]:
    """Return the lookups for `filter`."""
    found: dict[str, Any] = {}
    if "agent" in query:
        found["agent__slug"] = query["agent"]
    if "enabled" in query:
        found["is_enabled"] = query["enabled"] == "true"
    return found
