"""Memory edits as approval requests: the question for the approver, and the decision's effect."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.events.append import EventDraft, append_events
from agents.kernel.proposals import Background, Proposal, ProposalKind, beside_requests
from agents.models import ApprovalRequest, Effect, Run, ToolCall
from agents.policy import judge
from agents.review import Review
from agents.review.diff import diff_section
from agents.review.parts import DiffSection
from agents.services.approvals.asking import ask_beside
from agents.services.errors import NotAllowed
from agents.spec import AgentSpec
from agents.states import ApprovalStatus
from memory.actions.edits import Proposal as EditProposal
from memory.actions.edits import (
    asked_edit,
    carry_out_edit,
    edited_content,
    is_current,
    propose_edit,
    record_proposal,
)
from memory.actions.unasked import TOOL, may_save_unasked, save_unasked
from memory.edits import MemoryEdit
from memory.limits import MAX_FILE_BYTES
from memory.models import KIND, MemoryEditRequest
from memory.options import MemoryOptions
from memory.paths import is_personal, shown_path
from memory.queries.readers import personal_reader
from memory.queries.requests import shown_edit
from memory.queries.rights import may_change_file
from memory.review import memory_edit_review, purged_review
from text_scanner import scan

MOST_BESIDE = 20
"""Limit of pending requests for which a run does not wait.

At this limit, the run waits for the decision on its next request.
"""


class MemoryEditKind(ProposalKind):
    """The kind of approval request for an edit of one memory file. Its text is the whole file."""

    name = KIND
    label = _("memory edit")
    rule = TOOL
    unlike = ("write_file", "read_memory", "list_memory")
    relations = ("memory_edit__agent",)

    no_rule = "an edit of the memory always asks a person. A rule can deny it, or set the terms."
    no_grant = "Each edit of the memory needs its own approval."
    no_edit = "An edit cannot turn a call into a change of the memory: reject it with a message."
    no_tool = "Only write_memory changes the memory; editing a call of {tool} cannot."
    changed = "The file has changed since this request. Vel asks again: review the new request."
    unfit = "The file has changed, and the edit no longer fits: reject it."
    not_by_file = "--content-file is only for edits of the memory: use --input here."
    text_label = _("The file as it should be")
    text_help = "The complete file to save instead."
    save_label = _("Save with these changes")
    question = "Save it"
    most_bytes = MAX_FILE_BYTES

    def propose(self, run: Run, change: MemoryEdit) -> Proposal:
        person_id = personal_reader(run) if is_personal(change.path) else None
        return _proposal(propose_edit(run.agent_version.agent_id, change, person_id))

    def needs_person(self, run: Run, spec: AgentSpec, tool: str, change: MemoryEdit) -> bool:
        if tool != TOOL:
            return True  # the file tools cannot make the change
        return not goes_on(run, spec) and not may_save_unasked(run, spec, change)

    def propose_again(self, request: ApprovalRequest) -> Proposal:
        edit = request.memory_edit
        return _proposal(propose_edit(edit.agent_id, asked_edit(edit), edit.person_id))

    def store(self, request: ApprovalRequest, proposal: Proposal, step: int) -> None:
        record_proposal(request, step, proposal.change)

    def has(self, request: ApprovalRequest) -> bool:
        return hasattr(request, "memory_edit")

    def is_current(self, request: ApprovalRequest) -> bool:
        return is_current(request.memory_edit)

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        edited_content(request.memory_edit, arguments)

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        # Other people's runs read a shared memory, so only its owner and approvers may change it.
        edit = request.memory_edit
        if may_change_file(by, edit.agent, edit.path):
            return
        if is_personal(edit.path):
            raise NotAllowed(f"You can no longer use {edit.agent.name}: reject it.")
        raise NotAllowed(
            f"The memory of {edit.agent.name} is shared: only its owner, and people with the "
            "permission to approve, can change it."
        )

    def seen_by(self, user: AbstractBaseUser) -> Q:
        return Q(memory_edit__agent__owner=user.pk)

    def carry_out(
        self, request: ApprovalRequest, call: ToolCall | None, by_id: int
    ) -> list[EventDraft]:
        return carry_out_edit(request, call, by_id)

    def event_fields(self, request: ApprovalRequest) -> dict[str, str]:
        edit = request.memory_edit
        return {"path": shown_path(edit.path), "operation": edit.operation}

    def review(self, request: ApprovalRequest) -> Review:
        edit: MemoryEditRequest = request.memory_edit
        if edit.purged_at is not None:
            return purged_review(edit.path, edit.operation)
        proposed = edit.proposed_content
        return memory_edit_review(
            edit.path,
            edit.operation,
            edit.previous_content,
            proposed,
            findings=scan(proposed) if proposed is not None else (),
            warnings=edit.warnings,
            is_personal=edit.person_id is not None,
        )

    def edit_review(
        self, request: ApprovalRequest, arguments: Mapping[str, Any], where: str
    ) -> DiffSection:
        edit = request.memory_edit
        content = str(arguments.get("content", ""))
        return diff_section(
            edit.path, edit.proposed_content, content, findings=scan(content), where=where
        )

    def background(self, request: ApprovalRequest) -> Background:
        edit = request.memory_edit
        return Background(
            edit.reason, edit.provenance.get("step") or 0, edit.provenance.get("sources") or []
        )

    def text(self, request: ApprovalRequest) -> str:
        return request.memory_edit.proposed_content or ""

    def file_name(self, request: ApprovalRequest) -> str:
        return str(request.memory_edit.path)

    def size(self, request: ApprovalRequest) -> int:
        edit = request.memory_edit
        return sum(len(text or "") for text in (edit.proposed_content, edit.previous_content))

    def shown(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return the change that a request of the kind `memory` proposes; null for other kinds."""
        edit = request.memory_edit
        return {**shown_edit(edit), "warnings": edit.warnings, "provenance": edit.provenance}

    def in_full(self, request: ApprovalRequest) -> dict[str, Any]:
        edit = request.memory_edit
        return {
            "path": edit.path,
            "operation": edit.operation,
            "reason": edit.reason,
            "warnings": edit.warnings,
            "provenance": edit.provenance,
            "previous_content": edit.previous_content,
            "proposed_content": edit.proposed_content,
        }


def _proposal(found: EditProposal) -> Proposal:
    edit, is_private = found.edit, found.person_id is not None
    bound: tuple[Any, ...] = (edit.path, edit.operation, found.base_revision, found.after)
    if is_private:
        # Everybody who reads the log sees the digest, and must not be able to guess contents with
        # it.
        bound = (*bound, secrets.token_hex())
    return Proposal(found, bound, can_be_edited=found.after is not None, is_private=is_private)


MEMORY_EDIT = MemoryEditKind()


def goes_on(run: Run, spec: AgentSpec) -> bool:
    """Return whether the run may continue while a person decides about its next edit."""
    if spec.option(MemoryOptions).memory_requests != "continue":
        return False
    pending = ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING)
    return pending.filter(beside_requests()).count() < MOST_BESIDE


def save_or_ask(run_id: str, edit: MemoryEdit) -> None:
    """Save an edit without asking, or create an approval request while the run continues.

    The function runs in the transaction that stores the result of the tool call.
    """
    run = Run.objects.select_related("agent_version__agent", "clock").get(pk=run_id)
    spec = AgentSpec.model_validate(run.spec)
    if may_save_unasked(run, spec, edit):
        save_unasked(run, edit)
        return
    given = {
        "path": edit.path,
        "content": edit.content,
        "reason": edit.reason,
        "operation": edit.operation,
    }
    verdict = judge(spec, TOOL, Effect.READ, given, proposes=MEMORY_EDIT)
    proposal = MEMORY_EDIT.propose(run, edit)
    asked = ask_beside(
        run, MEMORY_EDIT, proposal, verdict.terms, TOOL, given,
        step=run.clock.turn, prompt=verdict.reason,
    )  # fmt: skip
    append_events(run_id, [asked])


PROPOSALS = [MEMORY_EDIT]
