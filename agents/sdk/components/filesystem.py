"""File tools as a component over any of the backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.components.execution import working_directory
from agents.sdk.config import DeepAgentConfig
from agents.sdk.errors import SetupError
from sandbox.backends import StateFilesystemBackend
from sandbox.backends.protocol import FileBackend
from sandbox.backends.sandboxed import SandboxFilesystemBackend

_TOOLS = ("ls", "read_file", "write_file", "edit_file", "glob", "grep")


class FilesystemMiddleware(BuiltInMiddleware):
    """ls, read_file, write_file, edit_file, glob and grep; in memory unless a backend is given.

    >>> files = FilesystemMiddleware(StateFilesystemBackend())
    >>> files.write_file("/notes.md", "All is well.")["size_bytes"]
    12
    """

    name = "filesystem"
    leave_out = "name the other tools as only_tools"

    def __init__(self, backend: FileBackend | None = None) -> None:
        if backend is not None and not all(callable(getattr(backend, one, None)) for one in _TOOLS):
            raise arguments.wrong("backend", "files, as a StateFilesystemBackend", backend)
        self.backend: FileBackend = StateFilesystemBackend() if backend is None else backend

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Make the backend's directory, or the database, the place of the agent's files.

        The agent has these tools anyway. Raises `SetupError` for other backends.
        """
        if isinstance(self.backend, SandboxFilesystemBackend):
            directory = str(self.backend.working_dir)
            if not config.sandbox_enabled:
                raise SetupError(
                    "sandbox=False (sandbox_enabled) contradicts the SandboxFilesystemBackend of "
                    "the FilesystemMiddleware: leave one out."
                )
            own = working_directory(config, directory, "FilesystemMiddleware")
            return replace(config, sandbox_working_dir=own)
        if type(self.backend) is StateFilesystemBackend:
            return replace(config, sandbox_enabled=False)
        raise SetupError(
            "An agent's files are a SandboxFilesystemBackend's or a StateFilesystemBackend's: give "
            "other files to it through tools of your own."
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec.from_function(self.ls, effect="read"),
            ToolSpec.from_function(self.read_file, effect="read"),
            ToolSpec.from_function(self.write_file, effect="write"),
            ToolSpec.from_function(self.edit_file, effect="write"),
            ToolSpec.from_function(self.glob, effect="read"),
            ToolSpec.from_function(self.grep, effect="read"),
        )

    def ls(self, path: str = "/") -> dict[str, Any]:
        """List a directory."""
        return self.backend.ls(path)

    def read_file(self, path: str, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Read lines of a file."""
        return self.backend.read_file(path, offset, limit)

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """Create a file, or write it anew."""
        return self.backend.write_file(path, content)

    def edit_file(
        self, path: str, old_text: str, new_text: str, replace_all: bool = False
    ) -> dict[str, Any]:
        """Replace a text that stands in the file once, or everywhere with replace_all."""
        return self.backend.edit_file(path, old_text, new_text, replace_all)

    def glob(self, pattern: str) -> dict[str, Any]:
        """Find files by their names, as **/*.md."""
        return self.backend.glob(pattern)

    def grep(self, pattern: str, path: str = "/", include: str | None = None) -> dict[str, Any]:
        """Find lines by a regular expression."""
        return self.backend.grep(pattern, path, include)

    def get_system_prompt_segment(self) -> str:
        return "## Files\nKeep what you find in files, and read only the parts that you need."
