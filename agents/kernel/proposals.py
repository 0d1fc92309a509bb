"""What people decide apart from tool calls: proposals, and requests about a run itself.

Proposals are changes that the decision of a person makes, not a tool.

A tool says what an input proposes (`Tool.proposes`), and so does a mount of the file tools
(`agents.kernel.mounts`). Such a call always waits for a person, and the decision makes the change
in its own transaction, so that nothing can change between the two. A feature declares each kind of
change in the list `PROPOSALS` of its module `proposals`.

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

from agents.kernel.features import collect

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.db.models import Q

    from agents.events.append import EventDraft
    from agents.models import ApprovalRequest, Run, ToolCall
    from agents.review import Review
    from agents.review.parts import DiffSection


@dataclass(frozen=True, slots=True)
class Proposed:
    """What one call proposes, as the model asks for it. `change` belongs to the kind."""

    kind: ProposalKind
    change: Any


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a proposed change would make now. `change` belongs to the kind."""

    change: Any
    bound: tuple[Any, ...]
    """JSON values that a decision is bound to, beside the tool and its input."""
    can_be_edited: bool = True


@dataclass(frozen=True, slots=True)
class Background:
    """What a person should know of a request, apart from the change itself."""

    reason: str = ""
    """The agent's reason, as the agent wrote it."""
    step: int = 0
    sources: list[dict[str, Any]] = field(default_factory=list)
    """`step`, `tool` and `source` of what the run had read and others may have written."""


class ProposalKind:
    """One kind of change. A request for approval has its name as `kind`.

    A person can change what is proposed. The kind offers it as one text, and an edited input is
    `{"content": text}`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people. It can be translated."""
    rule: ClassVar[str] = ""
    """The name of a tool. Its rules and its `interrupt_on` hold for all these calls."""
    unlike: ClassVar[tuple[str, ...]] = ()
    """Names of tools: a rule that also fits one of these does not mean these calls alone."""
    decisions: ClassVar[tuple[str, ...]] = ("approve", "edit", "reject")
    """Nobody can respond with the result of a change that was not made."""
    relations: ClassVar[tuple[str, ...]] = ()
    """What a list of requests selects with them, as for `select_related`."""

    no_rule: ClassVar[str] = ""
    """Says why no rule allows these calls. It comes after the name of a field."""
    no_grant: ClassVar[str] = ""
    """Says why nobody can allow these calls for good."""
    no_edit: ClassVar[str] = ""
    """Says that no edit can turn another call into one of these."""
    no_tool: ClassVar[str] = ""
    """Says the same to the model, with `{tool}`."""
    changed: ClassVar[str] = ""
    """Says that the change is asked anew, because what it builds on has changed."""
    unfit: ClassVar[str] = ""
    """Says that what it builds on has changed, and that it does not fit any more."""
    not_by_file: ClassVar[str] = ""
    """Says which requests take the text of a file as their edit."""
    text_label: ClassVar[str] = ""
    """The label of the text that a person can edit."""
    text_help: ClassVar[str] = ""
    save_label: ClassVar[str] = ""
    """The button that saves an edited text."""
    question: ClassVar[str] = ""
    """The question of the terminal, as `Save it`."""
    most_bytes: ClassVar[int] = 0
    """Of a text."""

    @property
    def refused(self) -> str:
        """The code of calls that propose what cannot be."""
        return f"{self.name}_refused"

    def propose(self, agent_id: str, change: Any) -> Proposal:
        """Return what `change` would make. Raises `InvalidRequest` if nobody needs to be asked."""
        raise NotImplementedError

    def propose_again(self, request: ApprovalRequest) -> Proposal:
        """Return what the change of a request would make now. Raises `InvalidRequest`."""
        raise NotImplementedError

    def store(self, request: ApprovalRequest, proposal: Proposal, step: int) -> None:
        """Store what the request is about. The request is stored, and its run is locked."""
        raise NotImplementedError

    def has(self, request: ApprovalRequest) -> bool:
        """Return whether what the request is about is still stored."""
        return True

    def is_current(self, request: ApprovalRequest) -> bool:
        """Return whether what the request builds on is as it was shown."""
        raise NotImplementedError

    def check_edit(self, request: ApprovalRequest, arguments: Any) -> None:
        """Raise `InvalidRequest` if the change cannot be made with an edited input."""
        raise NotImplementedError

    def check_right(self, request: ApprovalRequest, by: AbstractBaseUser) -> None:
        """Raise `NotAllowed` if this person may not approve the request."""
        raise NotImplementedError

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return which requests the user sees, apart from those of own runs and as an approver."""
        raise NotImplementedError

    def carry_out(self, request: ApprovalRequest, call: ToolCall, by_id: int) -> list[EventDraft]:
        """Make the approved change, and end the call. Run and request are locked.

        Raises `Conflict` if what it builds on has changed at this moment.
        """
        raise NotImplementedError

    def event_fields(self, request: ApprovalRequest) -> dict[str, str]:
        """Return more fields of the events of a request: `path` and `operation`."""
        return {}

    def review(self, request: ApprovalRequest) -> Review:
        """Return the proposed change as a person reads it."""
        raise NotImplementedError

    def edit_review(
        self, request: ApprovalRequest, arguments: Mapping[str, Any], where: str
    ) -> DiffSection:
        """Return the section of a review with what an edited input makes of it.

        `where` says where the whole text is.
        """
        raise NotImplementedError

    def background(self, request: ApprovalRequest) -> Background:
        """Return the agent's reason, and what it had read."""
        return Background()

    def text(self, request: ApprovalRequest) -> str:
        """Return the text that a person can edit."""
        raise NotImplementedError

    def file_name(self, request: ApprovalRequest) -> str:
        """Return a name with the suffix of the text, for editors."""
        return "text.md"

    def size(self, request: ApprovalRequest) -> int:
        """Return how many characters the request shows, apart from its input."""
        return 0

    def shown(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return it as the field `name` of a request in the REST API."""
        raise NotImplementedError

    def in_full(self, request: ApprovalRequest) -> dict[str, Any]:
        """Return it as the field `name` of `vel approvals show --json`."""
        raise NotImplementedError


class DecideAgain(Exception):
    """Rows have changed since `RunRequestKind.lock`. The decision begins again."""


class RunRequestKind:
    """One kind of requests that are about a run, and not about one of its calls.

    A request for approval has its name as `kind`. Runs that wait for the decision have it as
    `wait_reason`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[Any] = ""
    """The name for people, as in "waits for a ...". It can be translated."""
    relations: ClassVar[tuple[str, ...]] = ()
    """What a list of requests selects with them, as for `select_related`."""

    headline: ClassVar[str] = ""
    """What the run does, for a person's list: `Asks for ...`."""
    how_to_resume: ClassVar[str] = ""
    """Says how a waiting run continues, with `{run}` for its id."""
    why_waiting: ClassVar[str] = ""
    """Tells other programs why a person must act."""
    text_label: ClassVar[str] = ""
    """The label of the JSON that a person can edit."""
    save_label: ClassVar[str] = ""
    """The button that approves with changes."""
    question: ClassVar[str] = ""
    """The question of the terminal, as `Run it`."""

    def may_decide(self, user: Any, request: ApprovalRequest | None = None) -> bool:
        """Return whether a person decides these requests who does not approve calls.

        With `request`: whether the person decides this one.
        """
        return False

    def seen_by(self, user: AbstractBaseUser) -> Q:
        """Return which requests the user sees, apart from those of own runs and as an approver."""
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
        """Do what was decided. Raises `DecideAgain` if more runs wait than are locked."""
        raise NotImplementedError

    def review(self, request: ApprovalRequest) -> Review:
        """Return the request as a person reads it."""
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

    It is None, too, if the feature was removed meanwhile: nobody can approve the request then.
    """
    kind = proposal_kinds().get(request.kind)
    return kind if kind is not None and kind.has(request) else None


def run_request_kind(request: ApprovalRequest) -> RunRequestKind | None:
    """Return the kind of a request about a run. None for others, and if its feature is removed."""
    return run_request_kinds().get(request.kind)


def request_features() -> list[ProposalKind | RunRequestKind]:
    """Return the kinds of requests that features have."""
    return [*proposal_kinds().values(), *run_request_kinds().values()]


def request_relations() -> list[str]:
    """Return what lists of requests select with them, for `select_related`."""
    return [name for kind in request_features() for name in kind.relations]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        proposal_kinds.cache_clear()
        run_request_kinds.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.proposals")
