"""The tools and middleware that a Python program gives to one agent."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from agents.custom.base_middleware import Middleware as CustomMiddleware
from agents.custom.base_middleware import name_of
from agents.custom.tool_spec import ToolSpec
from agents.events.append import dump
from agents.kernel.programs import ProgramPart
from agents.middleware.base import Middleware, PromptContext, Tool
from agents.middleware.custom.calling import engine_tool
from agents.middleware.custom.state import StateKeeper
from agents.middleware.execution import ExecutionMiddleware
from agents.middleware.filesystem import FilesystemMiddleware
from agents.middleware.program_files import ProgramFiles
from agents.middleware.wire_schema import wire_schema
from agents.spec import AgentSpec
from agents.toolkits import ENDS_MARK, FILES_MARK

Part = TypeVar("Part", bound=ProgramPart)
_LENGTH = 32
"""Length of a fingerprint in characters, without the part that resumed runs must match."""


@dataclass(frozen=True)
class Member:
    """One middleware of an agent, with its tools and its prompt segment, which never change."""

    name: str
    middleware: CustomMiddleware
    tools: tuple[ToolSpec, ...]
    segment: str
    keeper: StateKeeper | None

    @classmethod
    def of(cls, middleware: CustomMiddleware) -> Member:
        return cls(
            name=name_of(middleware),
            middleware=middleware,
            tools=as_tools(middleware.get_tools()),
            segment=middleware.get_system_prompt_segment().strip(),
            keeper=StateKeeper.of(middleware),
        )


@dataclass(eq=False)
class Toolkit:
    """An agent's tools and middleware in this process. `agents.toolkits` maps threads to them.

    `of_subagents` are tools that only the named subagents have. `parts` are the program's objects
    for features. `loop` is the event loop in which the program awaits the run, for coroutines.
    `files` are the files that the program gives to the agent.
    """

    tools: tuple[ToolSpec, ...] = ()
    members: tuple[Member, ...] = ()
    of_subagents: Mapping[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    parts: tuple[ProgramPart, ...] = ()
    loop: asyncio.AbstractEventLoop | None = None
    files: ProgramFiles | None = None

    @cached_property
    def main_tools(self) -> tuple[ToolSpec, ...]:
        return (*self.tools, *(tool for member in self.members for tool in member.tools))

    @property
    def all_tools(self) -> Iterable[ToolSpec]:
        return (*self.main_tools, *(one for own in self.of_subagents.values() for one in own))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that the model sees of the toolkit; empty for an empty one.

        The last part is what resumed runs must match: see `ProgramPart.pinned`.
        """
        told = [
            [tool.name, tool.description, wire_schema(tool.signature.model), tool.effect]
            for tool in self.all_tools
        ]
        segments = [[member.name, member.segment] for member in self.members]
        own = {name: [tool.name for tool in tools] for name, tools in self.of_subagents.items()}
        described = [part.described for part in self.parts if part.described]
        if not (told or segments or described or self._pinned):
            return ""
        return _digest([told, segments, own, *described], _LENGTH) + self._pinned

    @cached_property
    def _pinned(self) -> str:
        pinned = [part.pinned for part in self.parts if part.pinned]
        if self.files is not None:
            pinned.append(self.files.pinned)
        mark = ENDS_MARK if self.wants_ends else "~"
        of_files = FILES_MARK if self.files is not None else ""
        return f"{mark}{_digest(pinned, 16)}{of_files}" if pinned else ""

    @property
    def wants_ends(self) -> bool:
        """Whether the program is notified when its runs end."""
        return any(part.wants_ends for part in self.parts)

    def part(self, kind: type[Part]) -> Part | None:
        """Return the program's part for one feature, or None."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    def has_parts_of(self, spec: Mapping[str, Any]) -> bool:
        """Return whether the program has all parts that a run with this definition needs."""
        has_pinned = spec.get("toolkit", "")[_LENGTH:] in ("", self._pinned)
        return has_pinned and all(part.covers(spec) for part in self.parts)

    @cached_property
    def middleware(self) -> tuple[Middleware, ...]:
        """The toolkit's middleware for the engine. It replaces Vel's of the same name."""
        return (_ToolkitMiddleware(self), *self.replacing)

    @cached_property
    def replacing(self) -> tuple[Middleware, ...]:
        """Vel's own middleware with values of the program."""
        if self.files is None:
            return ()
        return (FilesystemMiddleware(self.files), ExecutionMiddleware(self.files.executor))

    def keepers(self) -> list[StateKeeper]:
        return [member.keeper for member in self.members if member.keeper is not None]


class _ToolkitMiddleware(Middleware):
    name = "toolkit"
    profiles = frozenset({"full", "sandbox_only"})

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        kit = self._toolkit

        def loop() -> asyncio.AbstractEventLoop | None:
            return kit.loop

        made = {tool.name: engine_tool(tool, loop=loop) for tool in kit.tools}
        for member in kit.members:
            made |= {
                tool.name: engine_tool(tool, keeper=member.keeper, loop=loop)
                for tool in member.tools
            }
        own = kit.of_subagents.get(spec.subagent, ())
        return [*(made | {tool.name: engine_tool(tool, loop=loop) for tool in own}).values()]

    def prompt(self, context: PromptContext) -> str:
        """Return the prompt segments of members without tools, and of those with used tools."""
        return "\n\n".join(
            member.segment
            for member in self._toolkit.members
            if member.segment
            and (not member.tools or any(tool.name in context.tool_names for tool in member.tools))
        )


def _digest(value: Any, length: int) -> str:
    return hashlib.sha256(dump(value).encode()).hexdigest()[:length]


def as_tools(given: Sequence[ToolSpec | Callable[..., Any]]) -> tuple[ToolSpec, ...]:
    """Return functions as tools. Raises `TypeError` and `ValueError` with the tool's name."""
    return tuple(ToolSpec.from_function(item) for item in given)
