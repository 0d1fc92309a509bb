"""A feature's state for each run while a driver has it: `run_parts.RUN_PARTS` of a feature.

A part is defined once, when its run starts, and each later driver of the run loads it from rows.
The engine uses it for the content of the prompt, refused calls, directories of the sandbox, and the
state that a subagent inherits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from django.core.signals import setting_changed

from agents.events.append import EventDraft
from agents.kernel.features import collect
from agents.models import Run
from agents.policy import Verdict
from agents.spec import AgentSpec, SubagentSpec

Read = Callable[..., Any]
"""Calls a function that queries the database, from a thread of a tool, and returns its result."""


Known = Callable[[], Collection[str]]
"""Returns the names of all tools that some agent can have, and of those of the run."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The start of a run: events, and a note next to the person's message."""

    events: Sequence[EventDraft] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call that is about to be stored. `raw_input` is JSON."""

    run_id: str
    thread_id: str
    call_id: str
    tool: str
    raw_input: str
    is_error: bool
    tools: Collection[str]
    """The names of the tools that the run has."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """The state that a subagent's run gets from its parent."""

    write: Callable[[Run, str], None]
    """Writes rows for the new run, which a call with this id has started, in its transaction."""
    note: str = ""
    """A note for the model next to the task."""


class RunPart:
    """The base class. The default methods have no effect."""

    label: ClassVar[str] = ""
    """The key of its content in a prompt."""
    area: ClassVar[str] = ""
    """The read-only area of the sandbox in which its directory is: a field of `Workspace`."""
    prompt_is_old: bool = False
    """Whether its content of the prompt has changed. The engine clears this."""

    @classmethod
    async def prepare(cls, worker: Any, run: Run, spec: AgentSpec) -> Any:
        """Read the data that `begin` needs, outside a transaction.

        `worker` has `database`, `in_thread`.
        """
        return None

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        """Define the part for the whole run, in the transaction that starts it."""
        return Beginning()

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunPart:
        """Load the part of a run that has started."""
        return cls()

    def prompt_key(self) -> Any:
        """Return the identity of its content in the prompt, as JSON. A change starts a new epoch.

        Return None for content that never starts a new epoch.
        """
        return None

    def prompt_content(self) -> Any:
        """Return the data for the prompt segment of the feature's middleware."""
        return None

    def must_be_told(self) -> bool:
        """Return whether a prompt of a release before 0.1.0 lacks its content."""
        return False

    def refusal(self, tool: str, tools: Sequence[str], known: Known) -> Verdict | None:
        """Return the verdict against one of the run's `tools`, or None if it may be used now."""
        return None

    def tools_left(self, known: Known) -> frozenset[str] | None:
        """Return the tools that subagents may have, or None for all."""
        return None

    def finished(self, call: FinishedCall) -> Callable[[], None] | None:
        """Return a function for the transaction that stores the call, or None."""
        return None

    def directory(self, read: Read) -> Path | None:
        """Return the directory for its `area` on this machine. Raises `SandboxError`."""
        return None

    def for_child(self, subagent: SubagentSpec) -> Inherited | None:
        """Return the state that a subagent inherits, or None. Raises `SubagentError`."""
        return None

    def reminder(self) -> str:
        """Return a reminder for the model, for conversations without their earlier turns."""
        return ""


Part = TypeVar("Part", bound=RunPart)


@lru_cache(maxsize=1)
def run_parts() -> tuple[type[RunPart], ...]:
    """Return the parts of the installed features."""
    return tuple(kind for _, kind in collect("run_parts", "RUN_PARTS"))


class RunParts:
    """The parts of one run, by their classes."""

    def __init__(self, parts: Sequence[RunPart] = ()) -> None:
        self._parts = {type(part): part for part in parts}

    def __iter__(self) -> Iterator[RunPart]:
        return iter(self._parts.values())

    def get(self, kind: type[Part]) -> Part:
        """Return the part of this class. Raises `KeyError` if its feature is not installed."""
        found = self._parts[kind]
        assert isinstance(found, kind)
        return found

    @property
    def prompt_is_old(self) -> bool:
        return any(part.prompt_is_old for part in self)

    def prompt_keys(self) -> dict[str, Any]:
        """Return the identities of the parts' content in the prompt, if they have one."""
        keys = {part.label: part.prompt_key() for part in self}
        return {label: key for label, key in keys.items() if key}

    def prompt_content(self) -> dict[str, Any]:
        return {part.label: part.prompt_content() for part in self if part.label}


def load_parts(run: Run, spec: AgentSpec) -> RunParts:
    """Load the parts of a run that has started."""
    return RunParts([kind.load(run, spec) for kind in run_parts()])


async def prepare_parts(worker: Any, run: Run, spec: AgentSpec) -> Mapping[type[RunPart], Any]:
    """Read the data that `begin_parts` needs."""
    return {kind: await kind.prepare(worker, run, spec) for kind in run_parts()}


def begin_parts(
    run: Run, spec: AgentSpec, prepared: Mapping[type[RunPart], Any]
) -> tuple[list[EventDraft], list[str]]:
    """Define the parts of a run, and return their events and notes."""
    found = [kind.begin(run, spec, prepared.get(kind)) for kind in run_parts()]
    events = [event for beginning in found for event in beginning.events]
    return events, [beginning.note for beginning in found if beginning.note]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        run_parts.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.middleware.run_parts")
