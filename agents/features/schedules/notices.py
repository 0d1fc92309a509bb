"""Notices about scheduled runs that were not started."""

from __future__ import annotations

from agents.features.schedules.models import ScheduleFiring
from agents.hidden_text import cut_text, one_line, visible
from agents.kernel.notices import Message, Notice, NoticeKind, announce
from agents.services.approvals.notices import page_url

NOT_STARTED = "schedule.not_started"
_DETAIL_CHARACTERS = 1_000
_NAME_CHARACTERS = 100


def announce_firing(firing: ScheduleFiring) -> None:
    """Announce that a scheduled run was not started, in the transaction that records it."""
    agent_id = firing.schedule.agent_id
    announce(Notice(type=NOT_STARTED, subject_id=str(firing.pk), agent_id=agent_id))


class FiringKind(NoticeKind):
    """A scheduled run that was not started."""

    type = NOT_STARTED
    field = "schedule"
    model = "vel_schedules.ScheduleFiring"
    no_longer = "The schedule was deleted."

    def is_needed(self, subject_id: str) -> bool:
        return ScheduleFiring.objects.filter(pk=subject_id).exists()

    def message(self, subject_id: str) -> Message | None:
        rows = ScheduleFiring.objects.select_related("schedule__agent")
        firing = rows.filter(pk=subject_id).first()
        return None if firing is None else _message(firing)


def _message(firing: ScheduleFiring) -> Message:
    schedule = firing.schedule
    name = one_line(schedule.name, _NAME_CHARACTERS)
    detail = cut_text(visible(firing.detail), _DETAIL_CHARACTERS)
    url = page_url("web:schedule", schedule.id)
    data = {
        "id": schedule.id,
        "name": name,
        "agent": schedule.agent.slug,
        "due_at": firing.due_at.isoformat(),
        "reason": firing.reason,
        "detail": detail,
        "url": url,
    }
    due = f"{firing.due_at:%Y-%m-%d %H:%M} UTC"
    lines = (f"The scheduled run {name} of {due} was not started.", detail, "", url)
    return Message(data, f"{name} was not started", lines)


KINDS = [FiringKind]
