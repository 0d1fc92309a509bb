"""Values that a Python program gives to features for its agent: arguments of `create_deep_agent`.

A feature lists instances of `ProgramOptions` in its `program.PROGRAM_OPTIONS`. The module is
imported before Django is set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


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

    names: ClassVar[tuple[str, ...]]
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
