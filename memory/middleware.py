"""Tools for an agent's memory: reading is free, and each write waits for a person's approval."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, StringConstraints, model_validator

from agents.kernel.proposals import Proposed
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec
from memory.edits import MemoryEdit
from memory.paths import DIRECTORIES, MOUNT, InvalidPath
from memory.proposals import MEMORY_EDIT
from memory.queries.files import list_memory_entries, memory_state


class WriteMemoryInput(BaseModel):
    path: str
    content: str = ""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True)]
    operation: Literal["write", "append", "delete"] = "write"

    @model_validator(mode="after")
    def _has_content(self) -> WriteMemoryInput:
        if self.operation != "delete" and not self.content.strip():
            raise ValueError(
                f"`content` is missing: {self.operation} needs the text to remember. Use the "
                "operation delete to remove a file."
            )
        return self


class ReadMemoryInput(BaseModel):
    path: str


class ListMemoryInput(BaseModel):
    directory: str = "knowledge"


def memory_path(path: str) -> str:
    """Return the path inside the memory. File tools and models also write `/memory/…`."""
    return path.removeprefix(f"{MOUNT}/")


def _proposed(given: WriteMemoryInput) -> Proposed:
    path = memory_path(given.path)
    return Proposed(MEMORY_EDIT, MemoryEdit(path, given.operation, given.content, given.reason))


async def write_memory(context: ToolContext, given: WriteMemoryInput) -> ToolResult:
    """Fail: this is never called, because the decision on the request makes the edit."""
    raise AssertionError("an edit of the memory is made by the decision on it")


async def read_memory(context: ToolContext, given: ReadMemoryInput) -> ToolResult:
    path = memory_path(given.path)
    try:
        state = await context.in_database(memory_state, context.agent_id, path)
    except InvalidPath as problem:
        return error(str(problem), "invalid_path")
    if state.content is None:
        return error(f"No memory file at {path!r}: list_memory shows what there is.", "not_found")
    return ToolResult(state.content)


async def list_memory(context: ToolContext, given: ListMemoryInput) -> ToolResult:
    directory = memory_path(f"{given.directory}/").strip("/")
    if directory in (".", MOUNT.strip("/")):
        directory = ""
    entries = await context.in_database(list_memory_entries, context.agent_id, directory)
    if not entries and directory not in ("", *DIRECTORIES):
        return error(
            f"No files below {given.directory!r}. Give knowledge, a directory in it, or skills; "
            "'/' lists all.",
            "not_found",
        )
    return ToolResult([entry.path for entry in entries])


class MemoryMiddleware(Middleware):
    """The three memory tools. The file tools show the same files below /memory."""

    name = "memory"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return [
            Tool(
                "write_memory",
                "Propose to remember something, as a Markdown file such as "
                "knowledge/preferences.md. A person decides.",
                WriteMemoryInput,
                write_memory,
                Effect.READ,
                proposes=_proposed,
            ),
            Tool(
                "read_memory",
                "Read a file of your memory, such as knowledge/preferences.md.",
                ReadMemoryInput,
                read_memory,
                Effect.READ,
                is_whole=True,
            ),
            Tool(
                "list_memory",
                "List the files of your memory in a directory: knowledge, skills, or / for all.",
                ListMemoryInput,
                list_memory,
                Effect.READ,
            ),
        ]

    def prompt(self, context: PromptContext) -> str:
        if "read_memory" not in context.tool_names:
            return ""
        files = f" read_file sees them below {MOUNT}; commands do not."
        return (
            "## Memory\nYou remember between conversations in files: AGENTS.md (your own "
            "instructions), knowledge/ and skills/."
            f"{files if 'read_file' in context.tool_names else ''} Look with list_memory when "
            "earlier knowledge could help. When you learn a lasting fact, preference or "
            "correction, propose it with write_memory and say why; a person approves, changes or "
            "rejects it."
        )


MIDDLEWARE = [MemoryMiddleware()]
