"""The arguments of `create_deep_agent` that belong to features.

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
    """The values of a program for one feature. They exist only in the program's process."""

    described: Any = None
    """JSON data. The agent gets a new version when these data change."""
    pinned: Any = None
    """JSON data. A run continues only in a program that has the same data."""
    wants_ends: bool = False
    """Whether the program is notified when its runs end."""

    def covers(self, spec: Mapping[str, Any]) -> bool:
        """Return whether the program has everything that a run with `spec` needs from a program."""
        return True


class ProgramOptions:
    """Arguments that a feature adds to `create_deep_agent`.

    `values` of the methods are the values of these arguments, by name.
    """

    names: tuple[str, ...] = ()
    """The names of the arguments. Each is a field of `DeepAgentConfig`."""

    def checked(self, name: str, value: Any) -> Any:
        """Return the value of the argument `name` as the config stores it. Django is not set up.

        Raises `ValueError` for an invalid value.
        """
        return value

    def part(self, values: Mapping[str, Any]) -> ProgramPart:
        """Return the values in the form that the feature uses in the program's process."""
        return ProgramPart()

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that the agent stores, without empty ones.

        Raises `ValueError` for values that no run can use.
        """
        return {name: value for name, value in values.items() if value}

    def check_agent(self, values: Mapping[str, Any], agent: SessionAgent) -> None:
        """Raise `ValueError` for values that `agent` cannot use with the present rows.

        Called at the first use of the agent, in a transaction.
        """


class OptionArguments(ProgramOptions):
    """Options of one class as arguments. Their values are checked when the agent is created.

    The module of the class must not need a loaded Django app. `names` are the options that are
    arguments. The others are in the argument `options`.
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
