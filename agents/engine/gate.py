"""Interface of the gate, which decides whether a call may be made or needs approval.

Vel has exactly one gate: an app lists its class in `gate.GATES`. Without a gate no worker starts,
so no call can be made without a decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from pydantic import BaseModel

from agents.engine.storage.journal import Call
from agents.kernel.features import collect
from agents.kernel.park import Park
from agents.middleware.base import Tool
from agents.middleware.context import Preview
from agents.policy import Verdict


@dataclass(slots=True)
class CheckedCall:
    """A call with its tool and its validated input."""

    call: Call
    tool: Tool[Any]
    given: BaseModel
    """The validated input."""
    raw_input: Any
    """The input before the validation: from the model, or edited by a person."""
    grant_id: str = ""
    """The id of the grant that allows the call; empty if none does."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A call that cannot be made as it is. `message` tells the model why."""

    call: Call
    message: str
    code: str


Starting = Callable[[], bool]
"""Returns, in the transaction that stores the start of a call, whether it is still permitted."""


class Gate(ABC):
    """Base class of the gate. An instance decides about the calls of one claim of a run.

    A call is judged when the model requests it, permitted when it is its turn, and confirmed
    immediately before it is made. Calls without a permission wait for people. If a method returns
    `Unfit`, the engine ends the call with an error.
    """

    @abstractmethod
    def judge(self, tool: Tool[Any], given: BaseModel, raw_input: Any) -> Verdict:
        """Return what the policy says about a call. Changes no row."""

    @abstractmethod
    def awaits_decision(self, call: Call) -> bool:
        """Return whether a call needs a new decision, for example because its approval is old."""

    @abstractmethod
    async def permit(self, item: CheckedCall, verdict: Verdict) -> bool | Unfit:
        """Return whether a call may be made now. False: it needs the decision of a person.

        `verdict` is the result of `judge`. It is never "deny": the engine ends such calls earlier.
        """

    @abstractmethod
    async def confirm(self, item: CheckedCall) -> Starting | Unfit | None:
        """Return a check to run in the transaction that stores the start of the call.

        Returns None if the call needs another decision of a person, and `Unfit` if it cannot be
        made.
        """

    @abstractmethod
    def withdraw(self, call: Call) -> None:
        """Require another decision about a call whose last check has failed."""

    @abstractmethod
    async def ask(self, items: Sequence[CheckedCall]) -> Park | Unfit:
        """Request approval for calls, and return how the run waits for the decisions.

        All other calls of the turn have ended.
        """

    @abstractmethod
    def approved_preview(self, call: Call) -> Preview | None:
        """Return the preview that a person approved for this call; None if it had no preview."""


@lru_cache(maxsize=1)
def installed_gate() -> Callable[[Any], Gate]:
    """Return the gate class of the installed apps. Call the class with the session of a claim.

    Raises `ImproperlyConfigured` unless there is exactly one.
    """
    found = collect("gate", "GATES")
    if len(found) != 1:
        apps = ", ".join(config.name for config, _ in found) or "none"
        raise ImproperlyConfigured(
            f"Exactly one app must decide which tool calls may be made; these do: {apps}. Vel's "
            "own app is agents.features.approvals: remove it from VEL_DISABLED_FEATURES, or "
            "remove the other apps."
        )
    gate: Callable[[Any], Gate] = found[0][1]
    return gate


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        installed_gate.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.engine.gate")
