"""State that a feature keeps for each run: classes in `run_parts.RUN_PARTS` of the feature.

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
    """What a part adds at the start of a run: events, and a note next to the person's message."""

    events: Sequence[EventDraft] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call with its result, which is about to be stored. `raw_input` is JSON."""

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
    """The state that a subagent's run inherits from its parent run."""

    write: Callable[[Run, str], None]
    """A function that writes rows for the new run in the transaction that creates it.

    Its arguments are the new run, and the id of the call that has started it.
    """
    note: str = ""
    """A note for the model, next to the task."""


class RunPart:
    """Base class of a feature's part of a run. The default methods have no effect."""

    label: ClassVar[str] = ""
    """The key of the part's content in a prompt."""
    area: ClassVar[str] = ""
    """The read-only area of the sandbox for the part's directory: a field of `Workspace`."""
    prompt_is_old: bool = False
    """Whether the part's content in the prompt has changed. The engine sets this to False."""

    @classmethod
    async def prepare(cls, worker: Any, run: Run, spec: AgentSpec) -> Any:
        """Read the data that `begin` needs, outside a transaction, and return them.

        `worker` has `database` and `in_thread`.
        """
        return None

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        """Define the part for the whole run, in the transaction that starts the run."""
        return Beginning()

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunPart:
        """Return the part of a run that has started."""
        return cls()

    def prompt_key(self) -> Any:
        """Return a JSON value that identifies the content in the prompt.

        If it changes, a new epoch starts. Return None for content that never starts an epoch.
        """
        return None

    def prompt_content(self) -> Any:
        """Return the data for the prompt segment of the feature's middleware."""
        return None

    def must_be_told(self) -> bool:
        """Return whether a prompt of a release before 0.1.0 lacks the part's content."""
        return False

    def refusal(self, tool: str, tools: Sequence[str], known: Known) -> Verdict | None:
        """Return a verdict that denies the tool, or None if the run may use it now.

        `tools` are the names of the run's tools.
        """
        return None

    def tools_left(self, known: Known) -> frozenset[str] | None:
        """Return the names of the tools that subagents may have, or None for all."""
        return None

    def finished(self, call: FinishedCall) -> Callable[[], None] | None:
        """Return a function for the transaction that stores the call, or None."""
        return None

    def directory(self, read: Read) -> Path | None:
        """Return the directory for the sandbox area `area`, on this machine.

        Returns None for no directory. Raises `SandboxError`.
        """
        return None

    def for_child(self, subagent: SubagentSpec) -> Inherited | None:
        """Return the state that a subagent inherits, or None. Raises `SubagentError`."""
        return None

    def reminder(self) -> str:
        """Return a reminder for the model in conversations whose earlier turns are omitted."""
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
        """Return the part of class `kind`. Raises `KeyError` if its feature is not installed."""
        found = self._parts[kind]
        assert isinstance(found, kind)
        return found

    @property
    def prompt_is_old(self) -> bool:
        return any(part.prompt_is_old for part in self)

    def prompt_keys(self) -> dict[str, Any]:
        """Return the values of `prompt_key` by label, for the parts that have one."""
        keys = {part.label: part.prompt_key() for part in self}
        return {label: key for label, key in keys.items() if key}

    def prompt_content(self) -> dict[str, Any]:
        return {part.label: part.prompt_content() for part in self if part.label}


def load_parts(run: Run, spec: AgentSpec) -> RunParts:
    """Load the parts of a run that has started."""
    return RunParts([kind.load(run, spec) for kind in run_parts()])


async def prepare_parts(worker: Any, run: Run, spec: AgentSpec) -> Mapping[type[RunPart], Any]:
    """Return the data that `begin_parts` needs."""
    return {kind: await kind.prepare(worker, run, spec) for kind in run_parts()}


def begin_parts(
    run: Run, spec: AgentSpec, prepared: Mapping[type[RunPart], Any]
) -> tuple[list[EventDraft], list[str]]:
    """Define the parts of a run. Return their events and their notes for the model."""
    found = [kind.begin(run, spec, prepared.get(kind)) for kind in run_parts()]
    events = [event for beginning in found for event in beginning.events]
    return events, [beginning.note for beginning in found if beginning.note]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        run_parts.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.middleware.run_parts")
