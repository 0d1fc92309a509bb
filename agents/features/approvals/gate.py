"""The gate: the policy, then the grants and decisions of people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from agents.engine.gate import CheckedCall, Gate, Starting, Unfit
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Writer
from agents.features.approvals.descriptions import describe
from agents.features.approvals.family_state import family_state
from agents.features.approvals.requests import Question, approval_is_stale, wait_for_people
from agents.features.approvals.trials import Trials
from agents.kernel.park import Park
from agents.kernel.proposals import Proposed
from agents.middleware.base import Tool
from agents.middleware.context import Preview
from agents.middleware.inputs import input_names
from agents.models import ToolCall
from agents.policy import Verdict, judge
from agents.services.approvals.grants import find_grant, use_grant
from agents.services.errors import InvalidRequest
from agents.states import ToolCallStatus


class ApprovalsGate(Gate):
    """The gate of one claim."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trials = Trials(session)
        self._stale: set[tuple[int, int]] = set()
        """Calls whose approval no longer fits the workspace, or whose grant is used up."""

    def judge(self, tool: Tool[Any], given: BaseModel, raw_input: Any) -> Verdict:
        proposed = tool.proposed(given)
        return judge(
            self._session.spec,
            tool.name,
            tool.effect,
            raw_input,
            proposes=None if proposed is None else proposed.kind,
            tried=tool.trial is not None,
            reads=input_names(tool.input_model),
            asks=tool.asks,
        )

    def awaits_decision(self, call: Call) -> bool:
        return call.place in self._stale

    async def permit(self, item: CheckedCall, verdict: Verdict) -> bool | Unfit:
        call, tool = item.call, item.tool
        if tool.trial is not None and call.edited_input:
            # The trial was about the original call and not about a person's edit.
            message = (
                "A person's edit cannot turn a call into one that writes: make the call yourself."
            )
            return Unfit(call, message, "invalid_input")
        proposed = tool.proposed(item.given)
        if call.status == ToolCallStatus.APPROVED:
            if proposed is None:
                return True
            # The decision on a proposal makes its change. This call was approved as something else.
            return Unfit(call, proposed.kind.no_tool.format(tool=call.tool), "invalid_input")
        database = self._session.database
        if proposed is not None:
            problem = await database.run(_problem_of, self._session.agent_id, proposed)
            if problem is not None:
                return Unfit(call, problem, proposed.kind.refused)
            run, spec = self._session.run, self._session.spec
            needs = proposed.kind.needs_person
            return not await database.run(needs, run, spec, tool.name, proposed.change)
        if tool.trial is not None:
            return False  # a person checks its effect each time
        if verdict.action == "ask":
            reads = input_names(tool.input_model)
            run = self._session.run
            grant = await database.run(
                find_grant, run, call.tool, item.raw_input, verdict.terms, reads
            )
            if grant is None:
                return False
            item.grant_id = grant.id
        return True

    async def confirm(self, item: CheckedCall) -> Starting | Unfit | None:
        if item.tool.trial is not None:
            found = await self._trials.repeat(item)
            if isinstance(found, Unfit):
                return found
            if not found:
                self.withdraw(item.call)
                return None
        family = ""
        if item.call.status == ToolCallStatus.APPROVED:
            family = await family_state(self._session)
        return partial(may_start, self._session.writer, item.call, item.grant_id, family)

    def withdraw(self, call: Call) -> None:
        self._stale.add(call.place)

    async def ask(self, items: Sequence[CheckedCall]) -> Park | Unfit:
        questions = []
        for item in items:
            verdict = self.judge(item.tool, item.given, item.raw_input)
            preview: Preview | None = None
            if item.tool.trial is not None and item.call.status != ToolCallStatus.WAITING:
                found = await self._trials.make(item)
                if isinstance(found, Unfit):
                    return found
                preview = found
            proposed = item.tool.proposed(item.given)
            about = await describe(self._session, item)
            questions.append(Question(item.call, verdict, proposed, preview, about))
        return wait_for_people(questions, await family_state(self._session))

    def approved_preview(self, call: Call) -> Preview | None:
        return self._trials.approved.get(call.place)


def may_start(writer: Writer, call: Call, grant_id: str = "", family: str = "") -> bool:
    """Return whether a call may start, in the transaction that stores its start.

    Returns False if its approval is stale, or its grant is no longer valid.
    """
    if call.status == ToolCallStatus.APPROVED and approval_is_stale(writer, call, family):
        return False
    if not grant_id:
        return True
    if not use_grant(grant_id):
        return False
    row = ToolCall.objects.filter(run_id=writer.run_id, turn=call.turn, position=call.position)
    row.update(grant_id=grant_id)
    return True


def _problem_of(agent_id: str, proposed: Proposed) -> str | None:
    """Return why a proposal is invalid, and needs no approval request; None if it is valid."""
    try:
        proposed.kind.propose(agent_id, proposed.change)
    except InvalidRequest as problem:
        return problem.message
    return None


GATES = [ApprovalsGate]
