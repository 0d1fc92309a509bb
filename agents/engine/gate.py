"""The gate of a run: it decides which calls may be made, and asks people about the others.

Vel has one gate: an app lists its class in `gate.GATES`. Without a gate no worker starts, so no
call can be made without a decision.
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
    """A call with its tool and its checked input."""

    call: Call
    tool: Tool[Any]
    given: BaseModel
    raw_input: Any
    """The input before the check: the model's, or the one that a person has edited."""
    grant_id: str = ""
    """The grant that allows the call, if one does."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A call that cannot be made in its present form. `message` is for the model."""

    call: Call
    message: str
    code: str


Starting = Callable[[], bool]
"""Returns, in the transaction that stores the start of a call, whether it is still permitted."""


class Gate(ABC):
    """The decisions about the calls of one claim of a run.

    A call is judged when the model makes it, permitted when it is its turn, and confirmed
    immediately before it is made. Calls without a permission wait for people.
    """

    @abstractmethod
    def judge(self, tool: Tool[Any], given: BaseModel, raw_input: Any) -> Verdict:
        """Return the verdict of the policy on a call, without a change of any row."""

    @abstractmethod
    def awaits_decision(self, call: Call) -> bool:
        """Return whether a call needs another decision, for example because its approval is old."""

    @abstractmethod
    async def permit(self, item: CheckedCall, verdict: Verdict) -> bool | Unfit:
        """Return whether a call may be made now. Calls that the policy denies do not come here."""

    @abstractmethod
    async def confirm(self, item: CheckedCall) -> Starting | Unfit | None:
        """Return the last check of a permitted call, or None if it needs another decision."""

    @abstractmethod
    def withdraw(self, call: Call) -> None:
        """Require another decision about a call: its last check has failed."""

    @abstractmethod
    async def ask(self, items: Sequence[CheckedCall]) -> Park | Unfit:
        """Return the park in which the run waits for decisions about calls.

        All other calls of the turn have ended.
        """

    @abstractmethod
    def approved_preview(self, call: Call) -> Preview | None:
        """Return the approved result of the trial of a call that is made now, if it had one."""


@lru_cache(maxsize=1)
def installed_gate() -> Callable[[Any], Gate]:
    """Return the class of the gates of claims. It is called with the session of the claim.

    Raises `ImproperlyConfigured`.
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
