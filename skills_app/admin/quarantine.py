"""Skills in quarantine, for the admin's first page."""

from __future__ import annotations

from typing import Any

from agents.doors.admin.dashboard_boxes import DashboardBox
from agents.hidden_text import visible
from agents.selectors.visible import Person
from skills_app.admin.filters import skills_to_look_at
from skills_app.models import Skill, Trust

SHOWN = 5


def quarantine(user: Person) -> dict[str, Any]:
    found = (
        skills_to_look_at(user)
        .filter(is_deleted=False, versions__trust=Trust.QUARANTINED)
        .distinct()
        .order_by("name")
    )
    return {
        "count": found.count(),
        "skills": [{"pk": skill.pk, "name": visible(skill.name)} for skill in found[:SHOWN]],
    }


QUARANTINE_BOX = DashboardBox(Skill, "skills_app/admin/quarantine.html", quarantine)
