"""Query parameters shared by lists."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import PageQuery


def ordering(*names: str) -> serializers.ChoiceField:
    """Return a field for the order. The first name is the default; `-` reverses the order."""
    choices = list(dict.fromkeys(names))
    for name in names:
        other = name[1:] if name.startswith("-") else f"-{name}"
        if other not in choices:
            choices.append(other)
    return serializers.ChoiceField(choices=choices, default=choices[0])


def moment(**options: Any) -> serializers.DateTimeField:
    """Return a field for ISO 8601 times. Times without a zone are UTC."""
    return serializers.DateTimeField(default_timezone=datetime.UTC, required=False, **options)


class CreatedQuery(PageQuery):
    """A page of a list, with a range of creation times. Both limits are exclusive."""

    created_after = moment()
    created_before = moment()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        after, before = attrs.get("created_after"), attrs.get("created_before")
        if after and before and after >= before:
            raise ValidationError({"created_before": ["Must be later than created_after."]})
        return attrs


def created_between(query: dict[str, Any], column: str = "created_at") -> dict[str, Any]:
    """Return the lookups of the range for `filter`."""
    lookups = {"created_after": f"{column}__gt", "created_before": f"{column}__lt"}
    return {lookup: query[name] for name, lookup in lookups.items() if name in query}
