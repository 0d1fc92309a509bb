"""A run with its subagents, for the driver in this process."""

from __future__ import annotations

from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest, Run, RunClock
from agents.selectors.family import descendants_of, goes_on_alone
from agents.states import ApprovalStatus


class Family:
    """A run and its subagents.

    Each method queries them again, since other processes change them.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def members(self) -> list[Run]:
        """Return the run itself, then its descendants."""
        return [Run.objects.get(pk=self.run_id), *descendants_of(self.run_id)]

    def pending_requests(self) -> list[ApprovalRequest]:
        """Return the pending requests, the oldest first."""
        found = ApprovalRequest.objects.filter(
            run__in=[member.pk for member in self.members()], status=ApprovalStatus.PENDING
        )
        return list(
            found.select_related(
                "run__agent_version__agent",
                "run__owner",
                "run__thread",
                *request_relations(),
            ).order_by("id")
        )

    def is_stuck(self) -> bool:
        """Return whether it continues only after an action outside of this process."""
        run, *below = self.members()
        if run.has_ended:
            return False
        return not goes_on_alone([run, *(member for member in below if not member.has_ended)])

    def positions(self) -> dict[str, int]:
        """Return the last seq of each run, to read only later events."""
        clocks = RunClock.objects.filter(run__in=[member.pk for member in self.members()])
        return dict(clocks.values_list("run_id", "seq"))
