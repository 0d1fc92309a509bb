"""The comparison of the Python API finds each kind of breaking change."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from tests.compatibility.python_api import compare, describe


def start(task: str, limit: int = 1, *, user: str = "") -> None:
    """Do nothing."""


class Colour(Enum):
    RED = 1
    BLUE = 2


class Agent:
    """A class with a field, a property and methods. `vel` would define it."""

    name: str
    __module__ = "vel.example"

    def __init__(self, model: str) -> None:
        self.model = model

    @property
    def runs(self) -> int:
        return 0

    @classmethod
    def load(cls, path: str) -> Agent:
        return cls(path)

    def run(self, task: str) -> None:
        """Do nothing."""

    def _hidden(self) -> None:
        """Do nothing."""


def no_limit(task: str, *, user: str = "") -> None: ...
def required(task: str, limit: int, *, user: str = "") -> None: ...
def another(task: str, agent: str, limit: int = 1, *, user: str = "") -> None: ...
def by_name(task: str, *, limit: int = 1, user: str = "") -> None: ...
def other_order(limit: int = 1, task: str = "", *, user: str = "") -> None: ...
def inserted(task: str, more: int = 0, limit: int = 1, *, user: str = "") -> None: ...
def more(task: str, limit: int = 1, *, user: str = "", more: int = 0) -> None: ...
def any_name(task: str, limit: int = 1, **given: Any) -> None: ...
def positional(task: str = "", limit: int = 1, user: str = "") -> None: ...


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (no_limit, ["start limit: removed"]),
        (required, ["start limit: now required"]),
        (
            another,
            [
                "start: the order of its parameters has changed",
                "start agent: new required parameter",
            ],
        ),
        (by_name, ["start limit: POSITIONAL_OR_KEYWORD became KEYWORD_ONLY"]),
        (other_order, ["start: the order of its parameters has changed"]),
        (inserted, ["start: the order of its parameters has changed"]),
        (more, []),
        (any_name, []),
        (positional, []),
    ],
)
def test_a_breaking_change_of_a_function_is_found(
    new: Callable[..., None], expected: list[str]
) -> None:
    assert [str(one) for one in compare(describe({"start": start}), describe({"start": new}))] == (
        expected
    )


def test_a_removed_name_and_a_removed_value_are_found() -> None:
    old = describe({"Colour": Colour, "start": start})
    new = describe({"Colour": Enum("Colour", {"RED": 1})})
    assert [str(one) for one in compare(old, new)] == ["Colour.BLUE: removed", "start: removed"]


@pytest.mark.parametrize("member", ["name", "runs", "load", "run"])
def test_a_removed_member_of_a_class_is_found(member: str) -> None:
    old = describe({"Agent": Agent})
    new = describe({"Agent": Agent})
    del new["Agent"]["members"][member]
    assert [str(one) for one in compare(old, new)] == [f"Agent.{member}: removed"]
    assert "_hidden" not in old["Agent"]["members"]
