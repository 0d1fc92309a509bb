"""Standing permissions: giving one with an approval, using it, and taking it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import ApprovalGrant, ApprovalRequest, Run

GrantMatch = Literal["input", "command", "path", "tool"]


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """What "always allow this" means.

    `match`: `input`, exactly this input; `command`, commands that fit the expression `pattern`;
    `path`, files that fit `pattern`; `tool`, every call of the tool. It covers the runs of the
    run's owner, of everybody with `for_everybody`, only this conversation with `thread_only`.
    """

    match: GrantMatch = "input"
    pattern: str = ""
    for_everybody: bool = False
    thread_only: bool = False
    days: int = 7
    max_uses: int = 100
    reason: str = ""


def give_grant(
    request: ApprovalRequest, run: Run, terms: GrantTerms, *, by: AbstractBaseUser
) -> ApprovalGrant:
    """A grant with the approval of `request`, in its transaction; run and request are locked.

    Raises `InvalidRequest` and `NotAllowed`: then nothing is approved either.
    """
    raise NotImplementedError


def find_grant(run: Run, tool: str, tool_input: Any) -> ApprovalGrant | None:
    """A grant that lets this call run unasked, if there is one that is still good."""
    return None


def use_grant(grant_id: str) -> bool:
    """Count one use, in the transaction that starts the call. False: it is not good any more."""
    return False
