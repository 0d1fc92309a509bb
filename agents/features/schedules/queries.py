"""What a person may see of schedules."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.features.schedules.models import Schedule
from agents.selectors.visible import Person


def schedules_for(user: Person) -> QuerySet[Schedule]:
    """The schedules of `user`: a person's own, whatever the permissions."""
    if not user.is_authenticated:
        return Schedule.objects.none()
    return Schedule.objects.filter(owner=user.pk)
