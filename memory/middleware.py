"""Tools for an agent's memory. Reading needs no approval.

A write needs one, unless the owner has allowed the agent to save notes without approval (see
`may_save_unasked`).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

from agents.kernel.proposals import Proposed
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect, Run
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec
from memory.actions.unasked import may_save_unasked
from memory.edits import MemoryEdit
from memory.limits import PAGE_CHARACTERS
from memory.paths import ALWAYS, DIRECTORIES, MOUNT, PERSONAL, PERSONAL_ALWAYS, InvalidPath
from memory.proposals import MEMORY_EDIT, save_or_ask
from memory.queries.files import list_memory_entries, memory_state
from memory.queries.prompt import Knowledge
from memory.run_parts import RunKnowledge, RunMemory


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
    offset: int = Field(default=0, ge=0)
    """Characters to skip."""


class ListMemoryInput(BaseModel):
    directory: str = "knowledge"


def memory_path(path: str) -> str:
    """Return the path inside the memory for a path that may start with `/memory/`.

    File tools use that form, and models write it to the memory tools, too.
    """
    return path.removeprefix(f"{MOUNT}/")


def _proposed(given: WriteMemoryInput) -> Proposed:
    return Proposed(MEMORY_EDIT, _edit_of(given))


def _edit_of(given: WriteMemoryInput) -> MemoryEdit:
    return MemoryEdit(memory_path(given.path), given.operation, given.content, given.reason)


async def write_memory(context: ToolContext, given: WriteMemoryInput) -> ToolResult:
    """Save an edit without asking, or request approval while the run continues.

    For an edit for which the run waits, the decision makes the edit, and this function is not
    called.
    """
    edit = _edit_of(given)
    try:
        text = await context.in_database(_told_now, context.run_id, context.spec, edit)
    except InvalidRequest as problem:  # another call has changed the memory since the check
        return error(problem.message, MEMORY_EDIT.refused)
    return ToolResult(text, commit=partial(save_or_ask, context.run_id, edit))


def _told_now(run_id: str, spec: AgentSpec, edit: MemoryEdit) -> str:
    run = Run.objects.select_related("agent_version__agent").get(pk=run_id)
    if may_save_unasked(run, spec, edit):
        return f"{edit.path} is saved without asking."
    return f"A person is asked. Continue: {edit.path} changes only after approval."


async def read_memory(context: ToolContext, given: ReadMemoryInput) -> ToolResult:
    path = memory_path(given.path)
    try:
        state = await context.in_database(memory_state, context.agent_id, path, _reader(context))
    except InvalidPath as problem:
        return error(str(problem), "invalid_path")
    if state.content is None:
        return error(f"No memory file at {path!r}: list_memory lists the files.", "not_found")
    return _page(state.content, given.offset)


def _reader(context: ToolContext) -> int | None:
    """Return the id of the person whose `me/` the run reads, or None."""
    return context.part(RunKnowledge).person_id


def _page(text: str, offset: int) -> ToolResult:
    """Return up to `PAGE_CHARACTERS` of `text` from the character `offset`.

    The page ends at a line break if its second half contains one. A note says how to read on.
    """
    if offset and offset >= len(text):
        return error(f"The file has {len(text):,} characters: offset is too large.", "not_found")
    page = text[offset : offset + PAGE_CHARACTERS]
    end = offset + len(page)
    if end < len(text) and (line_end := page.rfind("\n", PAGE_CHARACTERS // 2)) >= 0:
        page = page[: line_end + 1]
        end = offset + len(page)
    if not offset and end == len(text):
        return ToolResult(page)
    go_on = f" Continue: offset={end}." if end < len(text) else ""
    note = f"[Characters {offset + 1:,} to {end:,} of {len(text):,}.{go_on}]"
    return ToolResult(f"{page}\n{note}")


async def list_memory(context: ToolContext, given: ListMemoryInput) -> ToolResult:
    directory = memory_path(f"{given.directory}/").strip("/")
    if directory in (".", MOUNT.strip("/")):
        directory = ""
    entries = await context.in_database(
        list_memory_entries, context.agent_id, directory, _reader(context)
    )
    if not entries and directory not in ("", *DIRECTORIES, PERSONAL):
        return error(
            f"No files below {given.directory!r}. Give knowledge, a directory in it, skills or me; "
            "'/' lists all.",
            "not_found",
        )
    return ToolResult([entry.path for entry in entries])


class MemoryMiddleware(Middleware):
    """Offer the three memory tools.

    The file tools show the same files below /memory, except those of `me/`.
    """

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
                runs_alone=True,
                proposes=_proposed,
            ),
            Tool(
                "read_memory",
                "Read a file of your memory, in pages.",
                ReadMemoryInput,
                read_memory,
                Effect.READ,
                is_whole=True,
            ),
            Tool(
                "list_memory",
                "List the files of your memory in a directory: knowledge, skills, me, or / for "
                "all.",
                ListMemoryInput,
                list_memory,
                Effect.READ,
            ),
        ]

    def prompt(self, context: PromptContext) -> str:
        if "read_memory" not in context.tool_names:
            return ""
        memory: RunMemory = context.parts.get("memory") or RunMemory()
        files = f" read_file sees them below {MOUNT}; commands do not."
        return (
            "## Memory\nYour memory is files: AGENTS.md (your own instructions), knowledge/ and "
            f"skills/.{files if 'read_file' in context.tool_names else ''} Each conversation loads "
            f"{ALWAYS} and the first line of other files. Propose a lasting fact, preference or "
            "correction with write_memory and say why."
            f"{_knowledge_text(memory.shared, ALWAYS)}{_personal_text(memory.personal)}"
        )


def _personal_text(knowledge: Knowledge | None) -> str:
    if knowledge is None:
        return ""
    return (
        "\n\n### The person's own memory\nme/ has notes for you from the person of this "
        "conversation. Only read_memory reads it. Propose facts about this person alone as "
        "me/NAME.md, which no others see. Never copy it into knowledge/, which others read."
        f"{_knowledge_text(knowledge, PERSONAL_ALWAYS)}"
    )


def _knowledge_text(knowledge: Knowledge, always_loaded: str) -> str:
    """Return the part of the prompt with the index and the content of the always loaded file."""
    parts = []
    if knowledge.index or knowledge.left_out:
        more = knowledge.left_out
        rest = [f"- and {more:,} more files: list_memory names them"] if more else []
        lines = "\n".join((*knowledge.index, *rest))
        parts.append(
            "Files when the conversation started. Read one with read_memory if it is about your "
            f"task:\n{lines}"
        )
    if knowledge.always:
        cut = " (its beginning: read_memory has the rest)" if knowledge.is_cut else ""
        quoted = "\n".join(f"> {line}" for line in knowledge.always.splitlines())
        parts.append(f"{always_loaded}{cut} is loaded in each conversation:\n{quoted}")
    return "".join(f"\n\n{part}" for part in parts)


MIDDLEWARE = [MemoryMiddleware()]
