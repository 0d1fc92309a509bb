"""Decisions of people other than approvals of tool calls: proposals, and requests about a run.

Proposals are changes made by a person's decision, not by a tool.

A tool returns the proposal of an input (`Tool.proposes`), and so does a mount of the file tools
(`agents.kernel.mounts`). The call always waits for a person, and the decision makes the change in
its own transaction: nothing can change between the two. A feature declares each kind of change in
the list `PROPOSALS` of its module `proposals`.

A request about a run names no call. A feature declares each kind in the list `RUN_REQUESTS` of its
module `run_requests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import Q

from agents.kernel.features import collect

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

    from agents.events.append import EventDraft
    from agents.models import ApprovalRequest, Run, ToolCall
    from agents.review import Review
    from agents.review.parts import DiffSection


@dataclass(frozen=True, slots=True)
class Proposed:
    """The proposal of one call, with the model's input. `change` belongs to the kind."""

    kind: ProposalKind
    change: Any


@dataclass(frozen=True, slots=True)
class Proposal:
    """The present result of a proposed change. `change` belongs to the kind."""

    change: Any
    bound: tuple[Any, ...]
    """JSON values that a decision is bound to, in addition to the tool and its input."""
    can_be_edited: bool = True
    is_private: bool = False
    """Only the owner of the run sees and decides the request, independent of permissions.

    One approval is enough then. The log of the run, which others may read, does not show the input.
    """


@dataclass(frozen=True, slots=True)
class Background:
    """Information for a person about a request, without the change itself."""

    reason: str = ""
    """The agent's reason, as the agent wrote it."""
    step: int = 0
    sources: list[dict[str, Any]] = field(default_factory=list)
    """`step`, `tool` and `source` of the texts that the run had read and others may have
    written."""


class ProposalKind:
    """One kind of change. A request for approval has its name as `kind`.

    A person can edit the proposed change. The kind offers it as one text, and an edited input is
    `{"content": text}`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people. It can be translated."""
    rule: ClassVar[str] = ""
    """The name of a tool. Its rules and its `interrupt_on` apply to all these calls."""
    unlike: ClassVar[tuple[str, ...]] = ()
    """Names of tools: a rule that also matches one of these is not about these calls alone."""
    decisions: ClassVar[tuple[str, ...]] = ("approve", "edit", "reject")
    """`respond` is impossible: there is no result of a change that was not made."""
    relations: ClassVar[tuple[str, ...]] = ()
    """The relations that lists of requests select for this kind, as for `select_related`."""

    no_rule: ClassVar[str] = ""
    """The error that no rule can allow these calls. It follows the name of a field."""
    no_grant: ClassVar[str] = ""
    """The error that these calls cannot get a grant."""
    no_edit: ClassVar[str] = ""
    """The error that no edit can turn another call into one of these."""
    no_tool: ClassVar[str] = ""
    """The same error for the model, with `{tool}`."""
    changed: ClassVar[str] = ""
    """The error that the base of the change has changed, and that there is a new request."""
    unfit: ClassVar[str] = ""
    """The error that the base has changed, and that the change can no longer be applied."""
    not_by_file: ClassVar[str] = ""
    """The error that names the requests which accept the text of a file as their edit."""
    text_label: ClassVar[str] = ""
    """The label of the text that a person can edit."""
    text_help: ClassVar[str] = ""
    save_label: ClassVar[str] = ""
    """The button that saves an edited text."""
    question: ClassVar[str] = ""
    """The question of the terminal, for example `Save it`."""
    most_bytes: ClassVar[int] = 0
    """The size limit of a text."""

    @property
    def refused(self) -> str:
        """The code of calls with an invalid proposal."""
        return f"{self.name}_refused"

    def propose(self, run: Run, change: Any) -> Proposal:
        """Return the result of `change` by `run`. Raises `InvalidRequest` if it is impossible."""
        raise NotImplementedError

    def needs_person(self, run: Run, spec: Any, tool: str, change: Any) -> bool:
        """Return whether the call must wait until a person has decided about a valid change.

        `spec` is the `agents.spec.AgentSpec` of the run.

        If not, the tool is called. It makes the change itself, or requests it without stopping the
        run (`agents.services.approvals.asking.ask_beside`).
        """
        return True

    def propose_again(self, request: ApprovalRequest) -> Proposal:
        """Return the present result of the change of a request. Raises `InvalidRequest`."""
        raise NotImplementedError

    def store(self, request: ApprovalRequest, proposal: Proposal, step: int) -> None:
        """Store the subject of the request. The request is stored, and its run is locked."""
        raise NotImplementedError

    def has(self, request: ApprovalRequest) -> bool:
        """Return whether the subject of the request is still stored."""
        return True

    def is_current(self, request: ApprovalRequest) -> bool:
        """Return whether the base of the request is the same as when it was shown."""
        raise NotImplementedError

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        """Raise `InvalidRequest` if the change cannot be made with an edited input."""
        raise NotImplementedError

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        """Raise `NotAllowed` if this person may not approve the request."""
        raise NotImplementedError

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return a filter of requests that the user sees, besides own ones and as an approver.

        It does not apply to private requests.
        """
        raise NotImplementedError

    def carry_out(
        self, request: ApprovalRequest, call: ToolCall | None, by_id: int
    ) -> list[EventDraft]:
        """Make the approved change, and end the call if one waits. Run and request are locked.

        Raises `Conflict` if its base has changed in this moment.
        """
        raise NotImplementedError

    def event_fields(self, request: ApprovalRequest) -> dict[str, str]:
        """Return more fields of the events of a request: `path` and `operation`.

        Everybody who may watch the run reads them, also those of a private request.
        """
        return {}

    def review(self, request: ApprovalRequest) -> Review:
        """Return the proposed change for display."""
        raise NotImplementedError

    def edit_review(
        self, request: ApprovalRequest, arguments: Mapping[str, Any], where: str
    ) -> DiffSection:
        """Return the section of a review with the result of an edited input.

        `where` is a text about the place of the whole input.
        """
        raise NotImplementedError

    def background(self, request: ApprovalRequest) -> Background:
        """Return the agent's reason, and its sources."""
        return Background()

    def text(self, request: ApprovalRequest) -> str:
        """Return the text that a person can edit."""
        raise NotImplementedError

    def file_name(self, request: ApprovalRequest) -> str:
        """Return a name with the suffix of the text, for editors."""
        return "text.md"

    def size(self, request: ApprovalRequest) -> int:
        """Return the number of characters that the request shows, without its input."""
        return 0

    def shown(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return it as the field `name` of a request in the REST API."""
        raise NotImplementedError

    def in_full(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return it as the field `name` of `vel approvals show --json`."""
        raise NotImplementedError


class DecideAgain(Exception):
    """Rows have changed since `RunRequestKind.lock`. The decision starts again."""


class RunRequestKind:
    """One kind of requests that are about a run, and not about one of its calls.

    A request for approval has its name as `kind`. Runs that wait for the decision have it as
    `wait_reason`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people, as in "waits for a ...". It can be translated."""
    relations: ClassVar[tuple[str, ...]] = ()
    """The relations that lists of requests select for this kind, as for `select_related`."""

    headline: ClassVar[str] = ""
    """The activity of the run, for a person's list: `Asks for ...`."""
    how_to_resume: ClassVar[str] = ""
    """Explains how a waiting run continues, with `{run}` for its id."""
    why_waiting: ClassVar[str] = ""
    """Explains to other programs why a person must act."""
    text_label: ClassVar[str] = ""
    """The label of the JSON that a person can edit."""
    save_label: ClassVar[str] = ""
    """The button that approves with changes."""
    question: ClassVar[str] = ""
    """The question of the terminal, for example `Run it`."""

    def may_decide(self, user: Any, request: ApprovalRequest | None = None) -> bool:
        """Return whether a person without the right to approve calls decides these requests.

        With `request`: whether the person decides this one.
        """
        return False

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return a filter of requests that the user sees, besides own ones and as an approver."""
        raise NotImplementedError

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        """Raise `NotAllowed` if this person may not approve the request."""

    def lock(self, request: ApprovalRequest) -> dict[str, Run]:
        """Lock all runs that a decision may wake, with their clocks; return them by id.

        The run of the request is among them. Ancestors come before descendants.
        """
        raise NotImplementedError

    def editable(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return the part of the input that a person can edit."""
        raise NotImplementedError

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        """Raise `InvalidRequest` if the request cannot be approved with an edited input."""
        raise NotImplementedError

    def carry_out(self, request: ApprovalRequest, locked: Mapping[str, Run]) -> None:
        """Carry out the decision. Raises `DecideAgain` if more runs wait than are locked."""
        raise NotImplementedError

    def review(self, request: ApprovalRequest) -> Review:
        """Return the request for display."""
        raise NotImplementedError


@lru_cache(maxsize=1)
def run_request_kinds() -> Mapping[str, RunRequestKind]:
    """Return the kinds of the installed features by their names."""
    return {kind.name: kind for _, kind in collect("run_requests", "RUN_REQUESTS")}


@lru_cache(maxsize=1)
def proposal_kinds() -> Mapping[str, ProposalKind]:
    """Return the kinds of the installed features by their names. Raises `ImproperlyConfigured`."""
    found: dict[str, ProposalKind] = {}
    for config, kind in collect("proposals", "PROPOSALS"):
        if found.setdefault(kind.name, kind) is not kind:
            raise ImproperlyConfigured(
                f"{config.name}.proposals: another feature has a kind {kind.name!r}: rename one."
            )
    return found


def proposal_kind(request: ApprovalRequest) -> ProposalKind | None:
    """Return the kind of a request that proposes a change, and None for other requests.

    It is also None if the feature was removed: then the request cannot be approved.
    """
    kind = proposal_kinds().get(request.kind)
    return kind if kind is not None and kind.has(request) else None


def is_beside(request: ApprovalRequest) -> bool:
    """Return whether the run of a proposal does not wait for the decision.

    The call that has made it has ended, so the request has no call.
    """
    return request.tool_call_id is None and request.kind in proposal_kinds()


def beside_requests() -> Q:
    """Return a filter of the requests for which no run waits."""
    return Q(tool_call=None, kind__in=list(proposal_kinds()))


def run_request_kind(request: ApprovalRequest) -> RunRequestKind | None:
    """Return the kind of a request about a run. None for others, and if its feature is removed."""
    return run_request_kinds().get(request.kind)


def request_features() -> list[ProposalKind | RunRequestKind]:
    """Return the kinds of requests that features have."""
    return [*proposal_kinds().values(), *run_request_kinds().values()]


def request_relations() -> list[str]:
    """Return the relations that lists of requests select, for `select_related`."""
    return [name for kind in request_features() for name in kind.relations]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        proposal_kinds.cache_clear()
        run_request_kinds.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.proposals")
