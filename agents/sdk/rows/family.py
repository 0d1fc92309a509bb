"""A run with its subagents, for whoever drives it in this process."""

from __future__ import annotations

from agents.kernel.proposals import request_relations
from agents.models import ApprovalRequest, Run, RunClock
from agents.selectors.family import descendants_of, goes_on_alone
from agents.states import ApprovalStatus


class Family:
    """Looked up anew at each question: others change it meanwhile."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def members(self) -> list[Run]:
        """The run itself, then what is below it."""
        return [Run.objects.get(pk=self.run_id), *descendants_of(self.run_id)]

    def pending_requests(self) -> list[ApprovalRequest]:
        """What people have to decide, the longest waiting first."""
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
        """Whether it goes on only when somebody else does something."""
        run, *below = self.members()
        if run.has_ended:
            return False
        return not goes_on_alone([run, *(member for member in below if not member.has_ended)])

    def positions(self) -> dict[str, int]:
        """The last event of each, for whoever wants to see only what comes."""
        clocks = RunClock.objects.filter(run__in=[member.pk for member in self.members()])
        return dict(clocks.values_list("run_id", "seq"))
