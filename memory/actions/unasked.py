"""Save an agent's edits without an approval request, if its owner has allowed this."""

from __future__ import annotations

from fnmatch import fnmatchcase

from django.db import transaction

from agents.events.append import append_events
from agents.models import Agent, Run
from agents.services.errors import Conflict
from agents.services.findings import SERIOUS
from agents.spec import AgentSpec
from memory.actions.edits import Proposal, change_memory, propose_edit
from memory.edits import MemoryEdit
from memory.events import MemoryChanged
from memory.folders import Change
from memory.models import MemoryEditRequest, Operation
from memory.options import MemoryOptions
from memory.paths import ALWAYS
from memory.queries.provenance import untrusted_sources
from memory.queries.readers import has_own_messages_only
from text_scanner import scan

TOOL = "write_memory"
SOURCE = "agent"
_TRIES = 5


def may_save_unasked(run: Run, spec: AgentSpec, edit: MemoryEdit) -> bool:
    """Return whether `edit` may be saved without a person's decision.

    This needs the agent's option for it, a policy that requires no decision, and a run of the owner
    of an agent without other users or approvers, in a conversation without messages of webhooks and
    other programs. The edit must write a knowledge file other than
    `always.md`, without a warning about its size and without a serious finding of the scanner.

    Raises:
        InvalidRequest: All conditions about the run are met, but the edit is invalid.
    """
    if spec.option(MemoryOptions).memory_saving != "save" or _policy_asks(spec):
        return False
    if edit.operation == "delete" or edit.path == ALWAYS or not edit.path.startswith("knowledge/"):
        return False
    agent = run.agent_version.agent
    if agent.owner_id != run.owner_id or not _is_private(agent):
        return False
    if not has_own_messages_only(run):
        return False
    proposal = propose_edit(agent.pk, edit)
    return not proposal.warnings and not _is_suspicious(proposal)


def save_unasked(run: Run, edit: MemoryEdit) -> None:
    """Save an edit for which `may_save_unasked` is true.

    The caller runs this in the transaction that stores the result of the tool call. The edit gets a
    revision with its reason and its sources, like an edit that a person approved.

    Raises:
        InvalidRequest: The edit is invalid, or would change nothing.
        Conflict: Other runs keep changing the file (code `stale`).
    """
    agent_id = run.agent_version.agent_id
    for _ in range(_TRIES):
        proposal = propose_edit(agent_id, edit)
        try:
            with transaction.atomic():
                revision = _store(run, proposal)
        except Conflict:
            continue  # another run has changed the file at this moment
        changed = MemoryChanged(
            path=edit.path, operation=edit.operation, revision=revision, approval_id=None
        )
        append_events(run.pk, [changed])
        return
    raise Conflict(f"{edit.path} keeps changing: try again.", code="stale")


def _store(run: Run, proposal: Proposal) -> int:
    edit, agent_id = proposal.edit, run.agent_version.agent_id
    asked = MemoryEditRequest.objects.create(
        agent_id=agent_id,
        run=run,
        path=edit.path,
        operation=edit.operation,
        previous_content=proposal.before,
        base_revision=proposal.base_revision,
        proposed_content=proposal.after,
        reason=edit.reason,
        provenance={"step": run.clock.turn, "sources": untrusted_sources(run)},
        asked={"content": edit.content, "old_text": None, "replace_all": False},
    )
    change = Change(
        path=edit.path,
        operation=Operation(edit.operation),
        content=proposal.after,
        base_revision=proposal.base_revision,
        source=SOURCE,
        reason=edit.reason,
        edit_request=asked,
    )
    return change_memory(agent_id, change)


def _policy_asks(spec: AgentSpec) -> bool:
    """Return whether the agent's policy requires decisions on changes of the memory."""
    if spec.approvals_needed > 1 or not spec.self_approval or spec.interrupt_on.get(TOOL):
        return True
    return any(
        rule.action == "ask" and fnmatchcase(TOOL, rule.tool) for rule in spec.approval_rules
    )


def _is_private(agent: Agent) -> bool:
    shared = agent.everyone or agent.groups.exists() or agent.approver_groups.exists()
    return not shared


def _is_suspicious(proposal: Proposal) -> bool:
    return any(finding.severity in SERIOUS for finding in scan(proposal.after or ""))
