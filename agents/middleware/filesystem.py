"""File tools for the run's files: ls, read_file, write_file, edit_file, glob and grep.

The tools also reach the mounts of features (`agents.kernel.mounts`). A write to a mount is a
proposal: it requires approval, and the decision makes the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from agents.kernel.mounts import Mount, mount_at
from agents.kernel.proposals import Proposed
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.middleware.file_tools import (
    FILE_TOOLS,
    EditFileInput,
    FileTool,
    ReadFileInput,
    WriteFileInput,
)
from agents.middleware.program_files import ProgramFiles, call_limits
from agents.models import Effect
from agents.spec import AgentSpec
from sandbox.cancellation import Cancellation
from sandbox.errors import PathRefused, SandboxError
from sandbox.paths import WORKING_DIR, normalise

COMMANDS = frozenset({"execute", "execute_python"})

__all__ = ["EditFileInput", "FilesystemMiddleware", "ReadFileInput", "WriteFileInput"]


def _runs(tool: FileTool) -> Callable[[ToolContext, Any], Awaitable[ToolResult]]:
    """Return the function with which the engine calls a tool.

    `{"error": …}` becomes an error result, and so does a workspace that cannot be opened.
    """

    async def run(context: ToolContext, given: Any) -> ToolResult:
        cancel = Cancellation()

        def blocking() -> dict[str, Any]:
            with call_limits(context.deadline, cancel):
                return tool.call(context.files(), given)

        try:
            found = await context.in_thread(blocking, on_cancel=cancel.cancel)
        except SandboxError as problem:
            return error(str(problem), "workspace")
        if "error" in found:
            return error(str(found["error"]), "file_error")
        return ToolResult(found)

    return run


def mounted(path: str, cwd: str) -> tuple[Mount, str] | None:
    """Return the mount that contains `path`, and the path in the mount; None for other files.

    The backend resolves paths in the same way, so no spelling can bypass the mount. Also returns
    None for a path that the backend refuses: the call then fails later.
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
├── user_uploads/  read-only: uploads of the user
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
    """Return a description of the agent's directories, for the prompt."""
    return READ_ONLY_LAYOUT if spec.read_only else LAYOUT


class FilesystemMiddleware(Middleware):
    """Offers the six file tools. With a sandbox, commands use the same paths.

    `files` are the files that a program gives to its agent.
    """

    name = "filesystem"

    def __init__(self, files: ProgramFiles | None = None) -> None:
        self.files = files

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        cwd = WORKING_DIR if spec.sandbox else "/"
        proposes: dict[str, Callable[[Any], Proposed | None]] = {
            "write_file": _written(cwd),
            "edit_file": _edited(cwd),
        }
        return [
            Tool(
                tool.name,
                tool.description,
                tool.input_model,
                _runs(tool),
                Effect(tool.effect),
                time_limit=tool.time_limit,
                proposes=proposes.get(tool.name),
            )
            for tool in FILE_TOOLS
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
            where = f"Files are in this tree{seen}:\n\n```\n{tree}\n```\n\n"
            where += "" if reads else "Put what the user should get into /sandbox/outputs. "
        elif self.files is None:
            where = "Files are kept with this conversation; paths start with a slash. "
        else:
            where = "Files are in a storage of the user's program; paths start with a slash. "
        where += self._about_commands(context)
        if reads:
            how = "You can change no file: put what you found into your answer. Read"
        else:
            how = "Keep long findings in files rather than in messages, and read"
        return f"## Files\n{where}{how} large files in pages."

    def _about_commands(self, context: PromptContext) -> str:
        """Return a sentence about the files that commands do not see."""
        if not COMMANDS & context.tool_names:
            return "" if context.spec.sandbox else "There are no commands: no tool runs code. "
        routes = () if self.files is None else sorted(self.files.routes)
        if not routes:
            return ""
        return f"Commands do not see {', '.join(routes)}: use the file tools there. "


def files_of(middleware: Iterable[Any]) -> ProgramFiles | None:
    """Return the files that a program gives to its agent, from the run's middleware."""
    found = [item for item in middleware if isinstance(item, FilesystemMiddleware)]
    return found[0].files if found else None
