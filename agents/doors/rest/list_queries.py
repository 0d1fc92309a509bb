"""Parameters that the queries of lists share."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import PageQuery


def ordering(*names: str) -> serializers.ChoiceField:
    """The first is the default. `-` before a name: the other way round."""
    choices = list(dict.fromkeys(names))
    for name in names:
        other = name[1:] if name.startswith("-") else f"-{name}"
        if other not in choices:
            choices.append(other)
    return serializers.ChoiceField(choices=choices, default=choices[0])


def moment(**options: Any) -> serializers.DateTimeField:
    """ISO 8601; UTC without a zone."""
    return serializers.DateTimeField(default_timezone=datetime.UTC, required=False, **options)


class CreatedQuery(PageQuery):
    """A part of a list, of what was made in a time. `created_after` is not within it."""

    created_after = moment()
    created_before = moment()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        after, before = attrs.get("created_after"), attrs.get("created_before")
        if after and before and after >= before:
            raise ValidationError({"created_before": ["Must be later than created_after."]})
        return attrs


def created_between(query: dict[str, Any], column: str = "created_at") -> dict[str, Any]:
    """The lookups for `filter`."""
    lookups = {"created_after": f"{column}__gt", "created_before": f"{column}__lt"}
    return {lookup: query[name] for name, lookup in lookups.items() if name in query}
