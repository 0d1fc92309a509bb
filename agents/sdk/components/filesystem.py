"""File tools as a component. An agent uses them for its files; alone they work on a backend."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.middleware.file_tools import FILE_TOOLS
from agents.middleware.input_check import fitting_input
from agents.middleware.program_files import RESERVED, ProgramFiles
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware, value_of
from agents.sdk.components.execution import working_directory
from agents.sdk.config import COMMAND_SECONDS, DeepAgentConfig
from agents.sdk.errors import SetupError
from sandbox.backends import CompositeBackend, MemoryFileStore, StateFilesystemBackend
from sandbox.backends.adapted import missing_methods
from sandbox.backends.composite import file_backend
from sandbox.backends.protocol import FileBackend, FilesystemBackend
from sandbox.backends.sandboxed import SandboxFilesystemBackend
from sandbox.errors import FileError, SandboxError
from sandbox.paths import is_within, normalise
from sandbox.policy import MAX_TIMEOUT

_TOOLS = {tool.name: tool for tool in FILE_TOOLS}
_NAME = "FilesystemMiddleware"


class FilesystemMiddleware(BuiltInMiddleware):
    """The tools ls, read_file, write_file, edit_file, glob and grep over a backend.

    In an agent, `backend` has the agent's files. It is one of Vel's backends, or any object with
    these six methods (`FilesystemBackend`, docs/guides/python.md#backends). Without a backend, an
    agent stores its files with each session and has no commands. Without an agent, the files are in
    memory.

    >>> from vel import FilesystemMiddleware
    >>> files = FilesystemMiddleware()
    >>> files.write_file("/notes.md", "One line")["size_bytes"]
    8
    >>> files.read_file("/notes.md")["content"]
    '     1 | One line'
    """

    name = "filesystem"
    leave_out = "name the other tools as only_tools"

    def __init__(self, backend: FileBackend | FilesystemBackend | None = None) -> None:
        if backend is not None and (missing := missing_methods(backend)):
            what = f"files with the six file tools (it lacks {missing[0]})"
            raise arguments.wrong("backend", what, backend)
        self._is_default = backend is None
        self.backend: Any = StateFilesystemBackend() if backend is None else backend
        self._files = file_backend(self.backend)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Return `config` with the backend as the place of the agent's files.

        Raises `SetupError` if another argument contradicts the backend.
        """
        if self._is_default:
            return replace(config, sandbox_enabled=False)
        files = ProgramFiles.of(self.backend)
        for path in files.routes:
            if any(is_within(path, top) or is_within(top, path) for top in RESERVED):
                raise SetupError(
                    f"backend: the route {path} is reserved, because Vel has directories in "
                    f"{', '.join(RESERVED)}. Choose another path."
                )
        if files.default is not None:
            return replace(config, sandbox_enabled=False, program_files=files)
        if not config.sandbox_enabled:
            raise SetupError(
                "sandbox=False (sandbox_enabled) contradicts the SandboxFilesystemBackend of the "
                f"{_NAME}: leave one out."
            )
        return replace(
            _with_sandbox(config, _top(self.backend)), program_files=files if files.routes else None
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        return [
            ToolSpec(
                tool.name,
                tool.description,
                getattr(self, tool.name),
                tool.input_model,
                effect=tool.effect,
                timeout=tool.time_limit,
            )
            for tool in FILE_TOOLS
        ]

    def ls(self, path: str | None = None, **others: Any) -> dict[str, Any]:
        """List a directory.

        Each tool returns its result; an error is a result with the key `error`. `others` are
        aliases of the parameters. Other names raise TypeError.
        """
        return self._run("ls", {"path": path}, others)

    def read_file(
        self,
        path: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        line_offset: int | None = None,
        **others: Any,
    ) -> dict[str, Any]:
        """Read `limit` lines of a file. `offset` is the number of the first of them, from 0.

        Skips the first `line_offset` characters of that line.
        """
        given = {"path": path, "offset": offset, "limit": limit, "line_offset": line_offset}
        return self._run("read_file", given, others)

    def write_file(
        self, path: str | None = None, content: str | None = None, **others: Any
    ) -> dict[str, Any]:
        """Create or overwrite a file. Returns {status, path, lines, size_bytes}, or {"error"}.

        Errors and `others` are as for `ls`.
        """
        return self._run("write_file", {"path": path, "content": content}, others)

    def edit_file(
        self,
        path: str | None = None,
        old_text: str | None = None,
        new_text: str | None = None,
        replace_all: bool = False,
        **others: Any,
    ) -> dict[str, Any]:
        """Replace a text that appears in the file once, or everywhere with replace_all."""
        given = {"path": path, "old_text": old_text, "new_text": new_text}
        return self._run("edit_file", {**given, "replace_all": replace_all}, others)

    def glob(
        self, pattern: str | None = None, path: str | None = None, **others: Any
    ) -> dict[str, Any]:
        """Find files by their names, as **/*.md."""
        return self._run("glob", {"pattern": pattern, "path": path}, others)

    def grep(
        self,
        pattern: str | None = None,
        path: str | None = None,
        include: str | None = None,
        ignore_case: bool = False,
        **others: Any,
    ) -> dict[str, Any]:
        """Find lines by a regular expression."""
        given = {"pattern": pattern, "path": path, "include": include}
        return self._run("grep", {**given, "ignore_case": ignore_case}, others)

    def _run(self, name: str, given: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
        """Run a tool as an agent does, and return its result. An error is a result, too."""
        tool = _TOOLS[name]
        for other in others:
            if other not in _other_names(tool.input_model):
                raise TypeError(f"{name}() has no parameter {other!r}")
        found = {key: value for key, value in given.items() if value is not None}
        checked = fitting_input(name, tool.input_model, {**found, **others})
        if isinstance(checked, str):
            return {"error": checked}
        try:
            return tool.call(self._files, checked)
        except SandboxError as error:
            return {"error": str(error)}

    def get_state(self) -> dict[str, Any]:
        """Return the files in memory as base64. Other backends store their files themselves."""
        if not isinstance(self.backend, StateFilesystemBackend):
            return {}
        store = self.backend.store
        paths = sorted(info.path for info in store.scan("/"))
        return {"files": {path: base64.b64encode(store[path]).decode() for path in paths}}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Replace the files in memory with those of a result of `get_state`.

        Other backends accept only a state without files. Raises `SetupError`, and then changes
        nothing.
        """
        files = _files_of(state)
        if not isinstance(self.backend, StateFilesystemBackend):
            if files:
                raise SetupError(
                    f"load_state: the files of a {type(self.backend).__name__} are not part of a "
                    "state: restore them in its storage."
                )
            return
        store = self.backend.store
        for info in list(store.scan("/")):
            if info.path not in files:
                del store[info.path]
        for path, data in files.items():
            store[path] = data

    def get_system_prompt_segment(self) -> str:
        return "## Files\nKeep your findings in files, and read only the parts that you need."


def _other_names(model: type[Any]) -> set[str]:
    choices = (
        getattr(info.validation_alias, "choices", ()) for info in model.model_fields.values()
    )
    return {name for each in choices for name in each}


def _files_of(state: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a state by path. Raises `SetupError` if the state is invalid."""
    if not isinstance(state, Mapping) or set(state) - {"files"}:
        raise SetupError("load_state: give a state from get_state, as {'files': {PATH: BASE64}}.")
    given = state.get("files", {})
    if not isinstance(given, Mapping):
        raise SetupError("load_state: files must be a dictionary.")
    backend = StateFilesystemBackend(MemoryFileStore())
    files = {}
    for path, content in given.items():
        try:
            if not isinstance(path, str) or normalise(path) != path or not isinstance(content, str):
                raise ValueError("give absolute paths and base64")
            files[path] = base64.b64decode(content, validate=True)
            backend.write_bytes(path, files[path])
        except (FileError, ValueError, binascii.Error) as error:
            raise SetupError(f"load_state: files: {arguments.shown(path)}: {error}") from None
    return files


def _top(backend: Any) -> SandboxFilesystemBackend:
    while isinstance(backend, CompositeBackend):
        backend = backend.default
    assert isinstance(backend, SandboxFilesystemBackend)
    return backend


def _with_sandbox(config: DeepAgentConfig, backend: SandboxFilesystemBackend) -> DeepAgentConfig:
    """Return `config` with the directory and the limits of `backend`. Raises `SetupError`."""
    seconds = backend.sandbox.timeout
    if not seconds.is_integer():
        raise SetupError(f"timeout: expected a whole number of seconds, got {seconds:g}.")
    arguments.check_number("timeout", int(seconds), 1, int(MAX_TIMEOUT))
    given = {
        "sandbox_network": (backend.sandbox.network, False),
        "sandbox_timeout": (int(seconds), COMMAND_SECONDS),
        "sandbox_allow_write": (backend.rules.allow_write, ()),
        "sandbox_protect": (backend.rules.protect, ()),
    }
    values = {
        name: value_of(name, getattr(config, name), own, usual, _NAME)
        for name, (own, usual) in given.items()
    }
    directory = working_directory(config, str(backend.working_dir), _NAME)
    return replace(config, sandbox_working_dir=directory, **values)
