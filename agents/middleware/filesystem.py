"""File tools: ls, read_file, write_file, edit_file, glob and grep over the thread's backend.

They also have access to the mounts of features (`agents.kernel.mounts`). A write to a mount is a
proposal: it requires approval, and the decision makes the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from agents.kernel.mounts import Mount, mount_at
from agents.kernel.proposals import Proposed
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec
from sandbox.errors import PathRefused, SandboxError
from sandbox.paths import WORKING_DIR, normalise

_PATH = AliasChoices("path", "file_path")


class LsInput(BaseModel):
    path: str = "."


class ReadFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=100, ge=1, le=10_000)


class WriteFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    content: str


class EditFileInput(BaseModel):
    path: str = Field(validation_alias=_PATH)
    old_text: str = Field(validation_alias=AliasChoices("old_text", "old_string"), min_length=1)
    new_text: str = Field(validation_alias=AliasChoices("new_text", "new_string"))
    replace_all: bool = False


class GlobInput(BaseModel):
    pattern: str
    path: str | None = None


class GrepInput(BaseModel):
    pattern: str
    path: str = "."
    include: str | None = Field(default=None, validation_alias=AliasChoices("include", "glob"))
    ignore_case: bool = False


async def _call(context: ToolContext, method: str, *arguments: Any) -> ToolResult:
    """Call a backend's method in a thread. `{"error": …}` becomes an error result.

    If the workspace cannot be opened, the result is an error too.
    """

    def blocking() -> dict[str, Any]:
        return getattr(context.files(), method)(*arguments)

    try:
        given = await context.in_thread(blocking)
    except SandboxError as problem:
        return error(str(problem), "workspace")
    if "error" in given:
        return error(given["error"], "file_error")
    return ToolResult(given)


async def ls(context: ToolContext, given: LsInput) -> ToolResult:
    return await _call(context, "ls", given.path)


async def read_file(context: ToolContext, given: ReadFileInput) -> ToolResult:
    return await _call(context, "read_file", given.path, given.offset, given.limit)


async def write_file(context: ToolContext, given: WriteFileInput) -> ToolResult:
    return await _call(context, "write_file", given.path, given.content)


async def edit_file(context: ToolContext, given: EditFileInput) -> ToolResult:
    return await _call(
        context, "edit_file", given.path, given.old_text, given.new_text, given.replace_all
    )


async def glob(context: ToolContext, given: GlobInput) -> ToolResult:
    return await _call(context, "glob", given.pattern, given.path)


async def grep(context: ToolContext, given: GrepInput) -> ToolResult:
    return await _call(context, "grep", given.pattern, given.path, given.include, given.ignore_case)


def mounted(path: str, cwd: str) -> tuple[Mount, str] | None:
    """Return the mount that contains `path` and the path in it; None for other files.

    The backend resolves paths in the same way, so no spelling can bypass the mount. A path that it
    refuses is None as well: the call fails later.
    """
    try:
        return mount_at(normalise(path, cwd))
    except PathRefused:
        return None


def _written(cwd: str) -> Callable[[WriteFileInput], Proposed | None]:
    def proposed(given: WriteFileInput) -> Proposed | None:
        found = mounted(given.path, cwd)
        return None if found is None else found[0].write(found[1], given.content, "write_file")

    return proposed


def _edited(cwd: str) -> Callable[[EditFileInput], Proposed | None]:
    def proposed(given: EditFileInput) -> Proposed | None:
        found = mounted(given.path, cwd)
        if found is None:
            return None
        mount, path = found
        return mount.replace(
            path, given.old_text, given.new_text, "edit_file", replace_all=given.replace_all
        )

    return proposed


LAYOUT = """\
/sandbox/
├── skills/        read-only: skill packages
├── user_uploads/  read-only: what the user uploaded
├── shared/        read-write: shared with subagents
├── outputs/       read-write: deliverables, which the user sees and downloads
└── workspace/     read-write: scratch; relative paths and commands start here"""
READ_ONLY_LAYOUT = """\
/sandbox/          all of it is read-only
├── skills/        skill packages
├── user_uploads/  what the user uploaded
├── shared/        shared with subagents
├── outputs/       deliverables
└── workspace/     relative paths and commands start here"""


def layout(spec: AgentSpec) -> str:
    """Return the directories, for the prompt."""
    return READ_ONLY_LAYOUT if spec.read_only else LAYOUT


class FilesystemMiddleware(Middleware):
    """The six file tools. With a sandbox their paths are the same as those of commands."""

    name = "filesystem"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        cwd = WORKING_DIR if spec.sandbox else "/"
        return [
            Tool("ls", "List a directory.", LsInput, ls, Effect.READ),
            Tool(
                "read_file",
                "Read a text file, with line numbers. Long files come in pages: go on with offset "
                "(lines to skip) while has_more is true.",
                ReadFileInput,
                read_file,
                Effect.READ,
            ),
            Tool(
                "write_file",
                "Create a file, or replace it whole.",
                WriteFileInput,
                write_file,
                Effect.WRITE,
                proposes=_written(cwd),
            ),
            Tool(
                "edit_file",
                "Replace old_text in a file. It must match exactly (without the line numbers) and "
                "be unique, unless replace_all is true.",
                EditFileInput,
                edit_file,
                Effect.WRITE,
                proposes=_edited(cwd),
            ),
            Tool(
                "glob",
                "Find files by name, such as **/*.md.",
                GlobInput,
                glob,
                Effect.READ,
            ),
            Tool(
                "grep",
                "Search files for a regular expression; include narrows by file name.",
                GrepInput,
                grep,
                Effect.READ,
                time_limit=60.0,
            ),
        ]

    def prompt(self, context: PromptContext) -> str:
        if not {"read_file", "write_file", "ls"} & context.tool_names:
            return ""
        reads = not context.changes_files
        if context.spec.sandbox:
            tree = READ_ONLY_LAYOUT if reads else LAYOUT
            seen = ", which commands see under the same paths"
            if not context.runs_commands:
                tree, seen = tree.replace("relative paths and commands", "relative paths"), ""
            where = f"Files lie in this tree{seen}:\n\n```\n{tree}\n```\n\n"
            where += "" if reads else "Put what the user should get into /sandbox/outputs. "
        else:
            where = "Files are kept with this conversation; paths begin with a slash. "
        if reads:
            how = "You can change no file: put what you found into your answer. Read"
        else:
            how = "Keep long findings in files rather than in messages, and read"
        return f"## Files\n{where}{how} large files in pages."
