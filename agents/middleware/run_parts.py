"""What features have for each run while a driver has it: `run_parts.RUN_PARTS` of a feature.

A part settles what it needs once, when its run begins, and is loaded from rows by each driver that
takes up the run. The engine asks it what belongs in the prompt, which calls it refuses, which
directories the sandbox has, and what a subagent inherits.
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
"""Call a function that queries the database, from a thread of a tool, and return its result."""


Known = Callable[[], Collection[str]]
"""Return the names of all tools that some agent can have, and of those of the run."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the beginning of a run says: events, and a note beside the person's message."""

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
    """What a subagent's run begins with, because its parent has it."""

    write: Callable[[Run, str], None]
    """Write rows for the new run, which a call with this id has started, in its transaction."""
    note: str = ""
    """What the model reads beside the task."""


class RunPart:
    """The base class. A method that a class does not override says nothing."""

    label: ClassVar[str] = ""
    """The key of what it puts into a prompt."""
    area: ClassVar[str] = ""
    """The read-only area of the sandbox in which its directory is: a field of `Workspace`."""
    prompt_is_old: bool = False
    """Whether its content of the prompt has changed. The engine clears this."""

    @classmethod
    async def prepare(cls, worker: Any, run: Run, spec: AgentSpec) -> Any:
        """Read what `begin` needs, outside a transaction. `worker` has `database`, `in_thread`."""
        return None

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        """Settle what the run has from now on, in the transaction of the driver that begins it."""
        return Beginning()

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunPart:
        """Read the rows of a run that has begun."""
        return cls()

    def prompt_key(self) -> Any:
        """Return what identifies its content of the prompt, as JSON. Another one begins an epoch.

        Return None for content that begins none.
        """
        return None

    def prompt_content(self) -> Any:
        """Return what the middleware of the feature needs for its segment of the prompt."""
        return None

    def must_be_told(self) -> bool:
        """Whether a prompt of a release before 0.1.0 lacks its content."""
        return False

    def refusal(self, tool: str, tools: Sequence[str], known: Known) -> Verdict | None:
        """Return why one of the run's `tools` cannot be used now."""
        return None

    def tools_left(self, known: Known) -> frozenset[str] | None:
        """Return the tools that it leaves to subagents, None for all."""
        return None

    def finished(self, call: FinishedCall) -> Callable[[], None] | None:
        """Return what the transaction that stores the call writes, too."""
        return None

    def directory(self, read: Read) -> Path | None:
        """Return the directory for its `area` on this machine. Raises `SandboxError`."""
        return None

    def for_child(self, subagent: SubagentSpec) -> Inherited | None:
        """Return what a subagent inherits. Raises `SubagentError`."""
        return None

    def reminder(self) -> str:
        """Return what the model must still know when earlier turns are left out."""
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
        """Return what identifies the content of the prompt, without parts that have none."""
        keys = {part.label: part.prompt_key() for part in self}
        return {label: key for label, key in keys.items() if key}

    def prompt_content(self) -> dict[str, Any]:
        return {part.label: part.prompt_content() for part in self if part.label}


def load_parts(run: Run, spec: AgentSpec) -> RunParts:
    """Read the parts of a run that has begun."""
    return RunParts([kind.load(run, spec) for kind in run_parts()])


async def prepare_parts(worker: Any, run: Run, spec: AgentSpec) -> Mapping[type[RunPart], Any]:
    """Read what `begin_parts` needs."""
    return {kind: await kind.prepare(worker, run, spec) for kind in run_parts()}


def begin_parts(
    run: Run, spec: AgentSpec, prepared: Mapping[type[RunPart], Any]
) -> tuple[list[EventDraft], list[str]]:
    """Settle the parts of a run, and return their events and notes."""
    found = [kind.begin(run, spec, prepared.get(kind)) for kind in run_parts()]
    events = [event for beginning in found for event in beginning.events]
    return events, [beginning.note for beginning in found if beginning.note]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        run_parts.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.middleware.run_parts")
