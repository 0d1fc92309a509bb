"""The gate: the policy, then the grants and decisions of people.

An approval applies to exactly one state of the files (invariant 4: the approved call is the call
that runs). The workspace generation counts a thread's own writes, but other runs can also change
the files that a subagent shares with its parent; so an approval is bound to the state of the whole
family of runs.

Some calls have a trial. Vel shows its result before the decision, and repeats it before the call. A
trial leaves no changes, so it can be repeated at any time, also after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from django.db.models import Count, Max, Sum
from django.db.models.functions import Length
from pydantic import BaseModel

from agents.engine.calls.context import CallContext
from agents.engine.errors import FenceLost, Stopped
from agents.engine.gate import CheckedCall, Gate, Starting, Unfit
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Writer, check_fence
from agents.features.approvals.descriptions import describe
from agents.features.approvals.requests import Question, approval_is_stale, wait_for_people
from agents.kernel.park import Park
from agents.kernel.proposals import Proposed
from agents.middleware.base import Tool, ToolResult
from agents.middleware.context import Preview
from agents.middleware.inputs import input_names
from agents.models import ApprovalRequest, Run, StateFile, Thread, ToolCall
from agents.policy import Verdict, judge
from agents.services.approvals.grants import find_grant, use_grant
from agents.services.errors import InvalidRequest
from agents.states import APPROVAL_TRANSITIONS, ApprovalStatus, ToolCallStatus, check_transition
from sandbox.directories.fingerprint import fingerprint
from sandbox.errors import SandboxError
from sandbox.paths import FAMILY_AREAS

logger = logging.getLogger(__name__)

TRIAL_SECONDS = 300.0
"""The limits of the systems that a tool accesses also apply, and are usually shorter."""


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
            problem = await database.run(_problem_of, self._session.run, proposed)
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
    """Return whether a call may start, and count the use of its grant.

    Runs in the transaction that stores the start. Returns False if the approval is stale, or the
    grant is no longer valid. `family` is the result of `family_state`, which an approval covers.
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


def _problem_of(run: Run, proposed: Proposed) -> str | None:
    """Return why a proposal is invalid, and needs no approval request; None if it is valid."""
    try:
        proposed.kind.propose(run, proposed.change)
    except InvalidRequest as problem:
        return problem.message
    return None


async def family_state(session: Session) -> str:
    """Return a text that changes when the files change that a family of runs shares.

    A family is a run with its subagents. Empty for a run without a family.
    """
    found = await session.database.run(_generations, session.writer.thread_id)
    if not found:
        return ""
    location = session.files.location
    if not session.spec.sandbox:
        rows = await session.database.run(_rows, location.family or location.thread_id)
        return rows if session.files.of_program is None else f"{rows} {found}"
    if location.own_directory is not None:
        # The caller's own directory is the workspace of all, and may be large: compare the numbers
        # of writes, not the contents.
        return found
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(session.threads, _shared, session)


def _generations(thread_id: str) -> str:
    """Return the generations of all threads of the family, or "" without one."""
    thread = Thread.objects.only("pk", "root_id").get(pk=thread_id)
    root = thread.root_id or thread.pk
    members = Thread.objects.filter(root_id=root).order_by("pk")
    counted = list(members.values_list("pk", "workspace_generation"))
    if not counted:
        return ""
    first = Thread.objects.values_list("workspace_generation", flat=True).get(pk=root)
    return repr([first, counted])


def _rows(thread_id: str) -> str:
    rows = StateFile.objects.filter(thread_id=thread_id)
    return repr(rows.aggregate(Count("pk"), Max("updated_at"), size=Sum(Length("content"))))


def _shared(session: Session) -> str:
    try:
        directories = session.files.workspace().directories
    except SandboxError:
        return "no workspace"  # the call itself reports it
    return fingerprint(directories[area] for area in FAMILY_AREAS)


class Trials:
    """The trials of one claim."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.approved: dict[tuple[int, int], Preview] = {}
        """By calls about to be made: the approved result, which a new trial has confirmed."""

    async def make(self, item: CheckedCall) -> Preview | Unfit:
        """Return the result of a trial.

        A trial that fails, or takes longer than `TRIAL_SECONDS`, returns an `Unfit`, which ends the
        call.
        """
        call, tool = item.call, item.tool
        assert tool.trial is not None
        session = self._session
        context = CallContext(session, call, min(tool.time_limit, TRIAL_SECONDS))
        try:
            with session.handle.interruptible():
                async with asyncio.timeout(TRIAL_SECONDS):
                    found = await tool.trial(context, item.given)
        except TimeoutError:
            return Unfit(call, f"{call.tool} could not be tried: it took too long.", "timeout")
        except (OperationalError, InterfaceError, InternalError, FenceLost, Stopped):
            raise
        except Exception as problem:  # a tool is third-party code
            logger.exception(
                "a trial failed", extra={"run_id": session.writer.run_id, "tool": call.tool}
            )
            message = f"{call.tool} could not be tried: {type(problem).__name__}."
            return Unfit(call, message, "exception")
        if isinstance(found, ToolResult):
            return Unfit(call, str(found.content), found.code)
        return found

    async def repeat(self, item: CheckedCall) -> bool | Unfit:
        """Return whether a new trial has the result that was approved.

        If not, the request is superseded, and the call needs a new approval. A trial that fails
        returns an `Unfit`, as in `make`.
        """
        database, writer = self._session.database, self._session.writer
        request = await database.run(_approved, writer, item.call)
        approved = request.preview if request is not None else None
        if approved is not None:
            found = await self.make(item)
            if isinstance(found, Unfit):
                return found
            if found["digest"] == approved["digest"]:
                self.approved[item.call.place] = approved
                return True
        await database.run(_supersede, writer, item.call)
        return False


def _approved(writer: Writer, call: Call) -> ApprovalRequest | None:
    return (
        ApprovalRequest.objects.filter(
            tool_call__run_id=writer.run_id,
            tool_call__turn=call.turn,
            tool_call__position=call.position,
            status=ApprovalStatus.DECIDED,
        )
        .order_by("-created_at")
        .first()
    )


def _supersede(writer: Writer, call: Call) -> None:
    check_fence(writer)
    request = _approved(writer, call)
    if request is not None:
        check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.SUPERSEDED)
        request.status = ApprovalStatus.SUPERSEDED
        request.save(update_fields=["status"])


GATES = [ApprovalsGate]
