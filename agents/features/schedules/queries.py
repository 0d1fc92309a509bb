"""The schedules that a person may see."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.features.schedules.models import Schedule
from agents.selectors.visible import Person


def schedules_for(user: Person) -> QuerySet[Schedule]:
    """Return the schedules of `user`. Permissions give no access to others."""
    if not user.is_authenticated:
        return Schedule.objects.none()
    return Schedule.objects.filter(owner=user.pk)
