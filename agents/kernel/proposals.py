"""Decisions of people other than approvals of tool calls: proposals, and requests about a run.

A proposal is a change that a person's decision makes, not a tool. A tool can turn the input of a
call into a proposal (`Tool.proposes`), and so can a mount of the file tools
(`agents.kernel.mounts`). The tool call then waits for a decision, unless its kind needs no person
for it (`ProposalKind.needs_person`). The decision makes the change in its own transaction: nothing
can change between decision and change. A feature declares each kind of change in the list
`PROPOSALS` of its module `proposals`.

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
from django.utils.functional import Promise

from agents.kernel.features import collect

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

    from agents.events.append import EventDraft
    from agents.models import ApprovalRequest, Run, ToolCall
    from agents.review import Review
    from agents.review.parts import DiffSection


@dataclass(frozen=True, slots=True)
class Proposed:
    """The change that the input of one call proposes. The kind defines `change`."""

    kind: ProposalKind
    change: Any


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change, with the result that it would have now. The kind defines `change`."""

    change: Any
    bound: tuple[Any, ...]
    """JSON values that a decision applies to, in addition to the tool and its input."""
    can_be_edited: bool = True
    is_private: bool = False
    """Whether only the owner of the run sees and decides the request, whatever others may do.

    One approval is then enough. The log of the run, which others may read, does not show the input.
    """


@dataclass(frozen=True, slots=True)
class Background:
    """Information about a request for the person who decides, without the change itself."""

    reason: str = ""
    """The reason that the agent has written."""
    step: int = 0
    sources: list[dict[str, Any]] = field(default_factory=list)
    """`step`, `tool` and `source` of the texts that the run had read and others may have written.
    """


class ProposalKind:
    """One kind of proposed change. Its name is the `kind` of its approval requests.

    A person can edit the proposed change. The kind offers it as one text, and an edited input is
    `{"content": text}`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people, which can be translated."""
    rule: ClassVar[str] = ""
    """The name of a tool whose rules and `interrupt_on` apply to all calls of this kind."""
    unlike: ClassVar[tuple[str, ...]] = ()
    """Tools of other kinds: a rule that also matches one of them is not about this kind alone."""
    decisions: ClassVar[tuple[str, ...]] = ("approve", "edit", "reject")
    """The possible decisions. `respond` is not: a change that was not made has no result."""
    relations: ClassVar[tuple[str, ...]] = ()
    """The arguments of `select_related` that lists of requests need for this kind."""

    no_rule: ClassVar[str] = ""
    """The error that no rule can allow these calls. It follows the name of a field."""
    no_grant: ClassVar[str] = ""
    """The error that these calls cannot have a grant."""
    no_edit: ClassVar[str] = ""
    """The error that no edit can turn another call into one of this kind."""
    no_tool: ClassVar[str] = ""
    """The same error as `no_edit` for the model, with `{tool}`."""
    changed: ClassVar[str] = ""
    """The error that the base of the change has changed and that there is a new request."""
    unfit: ClassVar[str] = ""
    """The error that the base has changed and that the change can no longer be applied."""
    not_by_file: ClassVar[str] = ""
    """The error that names the requests which accept the text of a file as their edit."""
    text_label: ClassVar[str | Promise] = ""
    """The label of the text that a person can edit."""
    text_help: ClassVar[str] = ""
    save_label: ClassVar[str | Promise] = ""
    """The label of the button that saves an edited text."""
    question: ClassVar[str] = ""
    """The question in the terminal, for example `Save it`."""
    most_bytes: ClassVar[int] = 0
    """The maximum size of the text in bytes."""

    @property
    def refused(self) -> str:
        """Return the code of calls with an invalid proposal."""
        return f"{self.name}_refused"

    def propose(self, run: Run, change: Any) -> Proposal:
        """Return the result that `change`, proposed by `run`, would have.

        Raises `InvalidRequest` if the change is impossible.
        """
        raise NotImplementedError

    def needs_person(self, run: Run, spec: Any, tool: str, change: Any) -> bool:
        """Return whether the call must wait until a person has decided about a valid change.

        `spec` is the `agents.spec.AgentSpec` of the run. If the result is false, the tool is
        called. The tool makes the change itself, or requests it without stopping the run
        (`agents.services.approvals.asking.ask_beside`).
        """
        return True

    def propose_again(self, request: ApprovalRequest) -> Proposal:
        """Return the result that the change of `request` would have now.

        Raises `InvalidRequest` if the change is no longer possible.
        """
        raise NotImplementedError

    def store(self, request: ApprovalRequest, proposal: Proposal, step: int) -> None:
        """Store the rows of the proposal. The caller has stored the request and locked its run.

        `step` is the number of the model call that proposed the change.
        """
        raise NotImplementedError

    def has(self, request: ApprovalRequest) -> bool:
        """Return whether the rows of the request are still stored."""
        return True

    def is_current(self, request: ApprovalRequest) -> bool:
        """Return whether the base of the change is still the one that the request shows."""
        raise NotImplementedError

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        """Raise `InvalidRequest` if the change cannot be made with an edited input."""
        raise NotImplementedError

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        """Raise `NotAllowed` if `by` may not approve the request."""
        raise NotImplementedError

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return a filter for the requests that `user` sees without owning or approving them.

        It does not apply to private requests.
        """
        raise NotImplementedError

    def carry_out(
        self, request: ApprovalRequest, call: ToolCall | None, by_id: int
    ) -> list[EventDraft]:
        """Make the approved change, and end the call if it waits. Return the events to write.

        The caller has locked the run and the request. Raises `Conflict` if the base of the change
        has changed at this moment.
        """
        raise NotImplementedError

    def event_fields(self, request: ApprovalRequest) -> dict[str, str]:
        """Return more fields for the events of a request: `path` and `operation`.

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

        `where` is a text that tells where the complete input is.
        """
        raise NotImplementedError

    def background(self, request: ApprovalRequest) -> Background:
        """Return the agent's reason and its sources."""
        return Background()

    def text(self, request: ApprovalRequest) -> str:
        """Return the text of the change that a person can edit."""
        raise NotImplementedError

    def file_name(self, request: ApprovalRequest) -> str:
        """Return a file name for the text, with the suffix that editors need."""
        return "text.md"

    def size(self, request: ApprovalRequest) -> int:
        """Return the number of characters that the request shows, without its input."""
        return 0

    def shown(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return the field of a request in the REST API that has the kind's name."""
        raise NotImplementedError

    def in_full(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return the field of `vel approvals show --json` that has the kind's name."""
        raise NotImplementedError


class DecideAgain(Exception):
    """Rows have changed since `RunRequestKind.lock`. The decision must start again."""


class RunRequestKind:
    """One kind of requests about a run, not about one of its calls.

    Its name is the `kind` of its approval requests and the `wait_reason` of runs that wait for a
    decision.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people, as in "waits for a ...". It can be translated."""
    relations: ClassVar[tuple[str, ...]] = ()
    """The arguments of `select_related` that lists of requests need for this kind."""

    headline: ClassVar[str | Promise] = ""
    """The activity of the run in a list for people: `Asks for ...`."""
    how_to_resume: ClassVar[str] = ""
    """The sentence on how a waiting run continues, with `{run}` for its id."""
    why_waiting: ClassVar[str] = ""
    """The sentence for other programs on why a person must act."""
    text_label: ClassVar[str | Promise] = ""
    """The label of the JSON text that a person can edit."""
    save_label: ClassVar[str | Promise] = ""
    """The label of the button that approves with changes."""
    question: ClassVar[str] = ""
    """The question in the terminal, for example `Run it`."""

    def may_decide(self, user: Any, request: ApprovalRequest | None = None) -> bool:
        """Return whether `user`, who may not approve calls, may decide requests of this kind.

        With `request`, the answer is for this request.
        """
        return False

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return a filter for the requests that `user` sees without owning or approving them."""
        raise NotImplementedError

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        """Raise `NotAllowed` if `by` may not approve the request."""

    def lock(self, request: ApprovalRequest) -> dict[str, Run]:
        """Lock all runs that a decision may resume, with their clocks, and return the runs by id.

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
        """Carry out the decision. Raises `DecideAgain` if runs wait that are not in `locked`."""
        raise NotImplementedError

    def review(self, request: ApprovalRequest) -> Review:
        """Return the request for display."""
        raise NotImplementedError


@lru_cache(maxsize=1)
def run_request_kinds() -> Mapping[str, RunRequestKind]:
    """Return the kinds of requests about runs of the installed features, by name."""
    return {kind.name: kind for _, kind in collect("run_requests", "RUN_REQUESTS")}


@lru_cache(maxsize=1)
def proposal_kinds() -> Mapping[str, ProposalKind]:
    """Return the kinds of proposals of the installed features, by name.

    Raises `ImproperlyConfigured` if two features have the same name.
    """
    found: dict[str, ProposalKind] = {}
    for config, kind in collect("proposals", "PROPOSALS"):
        if found.setdefault(kind.name, kind) is not kind:
            raise ImproperlyConfigured(
                f"{config.name}.proposals: another feature has a kind {kind.name!r}: rename one."
            )
    return found


def proposal_kind(request: ApprovalRequest) -> ProposalKind | None:
    """Return the kind of a request that proposes a change, None for other requests.

    The result is also None if the feature was removed. Such a request cannot be approved.
    """
    kind = proposal_kinds().get(request.kind)
    return kind if kind is not None and kind.has(request) else None


def is_beside(request: ApprovalRequest) -> bool:
    """Return whether the run of a proposal continues without the decision.

    The call that made the proposal has ended, so the request has no call.
    """
    return request.tool_call_id is None and request.kind in proposal_kinds()


def beside_requests() -> Q:
    """Return a filter for the proposals whose runs continue without the decision."""
    return Q(tool_call=None, kind__in=list(proposal_kinds()))


def run_request_kind(request: ApprovalRequest) -> RunRequestKind | None:
    """Return the kind of a request about a run, None for other requests and removed features."""
    return run_request_kinds().get(request.kind)


def feature_request_kinds() -> list[ProposalKind | RunRequestKind]:
    """Return all kinds of approval requests of features: proposals and requests about runs."""
    return [*proposal_kinds().values(), *run_request_kinds().values()]


def request_relations() -> list[str]:
    """Return the arguments of `select_related` that lists of requests need."""
    return [name for kind in feature_request_kinds() for name in kind.relations]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        proposal_kinds.cache_clear()
        run_request_kinds.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.proposals")
