"""Structured output: answers in a form that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import TypedDict

from agents.events.event import Event


class Mismatch(TypedDict):
    """One place of the answer that does not match the schema."""

    path: str
    """The place in the answer, from `$`. Empty for the whole text."""
    message: str
    """The problem there."""


@dataclass(frozen=True, kw_only=True)
class OutputInvalid(Event):
    """An answer does not match the schema. The model is asked again, or the run fails."""

    type: ClassVar[str] = "output.invalid"

    attempt: int
    """The number of the answer that does not match, from 1."""
    problems: list[Mismatch]
    """All mismatches."""


EVENTS = [OutputInvalid]
