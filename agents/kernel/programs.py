"""Values that a Python program gives to features for its agent: arguments of `create_deep_agent`.

A feature lists instances of `ProgramOptions` in its `program.PROGRAM_OPTIONS`. The module is
imported before Django is set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.kernel.options import AgentOptions
from agents.kernel.session_state import SessionAgent


class ProgramPart:
    """A program's values for one feature. They exist in the process of the program only."""

    described: Any = None
    """JSON. The agent gets a new version when it changes."""
    pinned: Any = None
    """JSON. A run continues only in a program that has the same."""
    wants_ends: bool = False
    """Whether the program is notified of the ends of its runs."""

    def covers(self, spec: Mapping[str, Any]) -> bool:
        """Return whether the program has everything that a run with this spec needs of it."""
        return True


class ProgramOptions:
    """Arguments that a feature adds to `create_deep_agent`."""

    names: tuple[str, ...] = ()
    """Each is a field of `DeepAgentConfig`."""

    def checked(self, name: str, value: Any) -> Any:
        """Return a value in the form of the config. Raises `ValueError`. Django is not set up."""
        return value

    def part(self, values: Mapping[str, Any]) -> ProgramPart:
        """Return the program's values for the feature."""
        return ProgramPart()

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that the agent stores, without missing ones.

        Raises `ValueError` for values that no run can use.
        """
        return {name: value for name, value in values.items() if value}

    def check_agent(self, values: Mapping[str, Any], agent: SessionAgent) -> None:
        """Refuse values that `agent` cannot use with the present rows. Raises `ValueError`.

        It is called at the first use of the agent, in a transaction.
        """


class OptionArguments(ProgramOptions):
    """Options whose values are checked when the agent is made. Their module needs no app.

    `names` are those that are arguments. The others are in the argument `options`.
    """

    def __init__(self, kind: type[AgentOptions], *names: str) -> None:
        self.kind, self.names = kind, names

    def checked(self, name: str, value: Any) -> Any:
        """Return the value as JSON data."""
        try:
            return self.kind.model_validate({name: value}).model_dump(mode="json")[name]
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise ValueError(f"{name}: {message}, got {value!r:.80}.") from None
