"""Adapter for backends that a program provides: any object with the six file tools.

The program's code can raise, hang, and return anything. The adapter converts every outcome to a
result of a tool.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from io import BytesIO
from typing import Any, TypeVar, cast

from sandbox.backends.names import meant, shown
from sandbox.backends.plain import NotPlain, plain_result, text_of
from sandbox.backends.protocol import (
    ABSENT,
    Entry,
    FileStat,
    FileType,
    Listing,
    OpenedFile,
    Result,
)
from sandbox.backends.results import appeared, changed, reports_errors
from sandbox.backends.tools import FileTools
from sandbox.errors import (
    FileAccessFailed,
    FileChanged,
    FileError,
    FileMissing,
    FileTooLarge,
    InvalidRequest,
    IsDirectory,
    NotDirectory,
    ReadOnlyPath,
    SandboxSetupError,
    SandboxUnavailable,
)

T = TypeVar("T")
Call = Callable[[Callable[[], Any]], Any]
"""Calls a function and returns its result. It can raise TimeoutError."""

SIX_TOOLS = ("ls", "read_file", "write_file", "edit_file", "glob", "grep")
_OPTIONAL = ("read_bytes", "write_bytes", "execute", "execute_python")
_TYPES: dict[Any, FileType] = {"file": "file", "directory": "directory", "dir": "directory"}
_NUMBERED = re.compile(r" *(\d+) \| (.*)", re.DOTALL)
_ANY = "**"
_PAGE = 2_000
"""Lines in one read from a backend without read_bytes."""
_READ_ONLY = "read-only here. Put your results into your answer."


def missing_methods(backend: object) -> list[str]:
    """Return what `backend` lacks, each as the end of the sentence "it lacks …".

    These are the file tools that are missing or cannot be called, and the tools that are async
    functions, which Vel does not call.
    """
    found = []
    for name in SIX_TOOLS:
        method = getattr(backend, name, None)
        if not callable(method) or isinstance(backend, type):
            found.append(name)
    for name in (*SIX_TOOLS, *_OPTIONAL):
        if inspect.iscoroutinefunction(getattr(backend, name, None)):
            found.append(f"{name} as a function that is not async")
    return found


def directly(function: Callable[[], T]) -> T:
    return function()


class AdaptedBackend(FileTools):
    """Backend of Vel that wraps a program's object with the six file tools (FilesystemBackend).

    The adapter calls the object's tools with canonical absolute paths, through `call`. Its methods
    for bytes use read_bytes and write_bytes of the object, and are limited to text if the object
    lacks them. Its write_file and edit_file ignore `expected_hash`, because the object cannot check
    it.

    Raises:
        SandboxSetupError: The object lacks one of the six tools.
    """

    has_own_tools = True

    def __init__(self, backend: Any, call: Call = directly, *, read_only: bool = False) -> None:
        super().__init__()
        if missing := missing_methods(backend):
            raise SandboxSetupError(
                f"backend: {backend!r:.80} must have the six file tools: it lacks {missing[0]}."
            )
        self.inner = backend
        self._call = call
        self.name = type(backend).__name__
        self._has = {name for name in _OPTIONAL if callable(getattr(backend, name, None))}
        self._parameters = {name: _parameters(getattr(backend, name)) for name in SIX_TOOLS}
        self.supports_write = not read_only
        runs = not read_only and getattr(backend, "supports_execute", True) is not False
        self.supports_execute = runs and "execute" in self._has
        self.supports_python = runs and "execute_python" in self._has

    def with_call(self, call: Call, *, read_only: bool = False) -> AdaptedBackend:
        """Return a backend of the same files that calls the program's tools with `call`."""
        return AdaptedBackend(self.inner, call, read_only=read_only or not self.supports_write)

    @reports_errors
    def ls(self, path: str = "/") -> Result:
        return self._tool("ls", self._theirs(path))

    @reports_errors
    def read_file(
        self, path: str, offset: int = 0, limit: int = 100, line_offset: int = 0
    ) -> Result:
        if not line_offset:
            return self._tool("read_file", self._theirs(path), offset, limit)
        more = self._accepted("read_file", "line_offset", line_offset)
        return self._tool("read_file", self._theirs(path), offset, limit, **more)

    @reports_errors
    def write_file(self, path: str, content: str, *, expected_hash: str | None = None) -> Result:
        self._check_writable(path)
        return self._tool("write_file", self._theirs(path), content)

    @reports_errors
    def edit_file(
        self,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
        *,
        expected_hash: str | None = None,
    ) -> Result:
        self._check_writable(path)
        more = self._accepted("edit_file", "replace_all", True) if replace_all else {}
        return self._tool("edit_file", self._theirs(path), old_text, new_text, **more)

    @reports_errors
    def glob(self, pattern: str, path: str | None = None) -> Result:
        if path is None or pattern.startswith("/"):
            return self._tool("glob", pattern)
        start = self._theirs(path)
        if self._accepts("glob", "path"):
            return self._tool("glob", pattern, path=start)
        return self._tool("glob", pattern if start == "/" else f"{start}/{pattern}")

    @reports_errors
    def grep(
        self, pattern: str, path: str = "/", include: str | None = None, ignore_case: bool = False
    ) -> Result:
        start = self._theirs(path)
        if not ignore_case:
            return self._tool("grep", pattern, start, include)
        if self._accepts("grep", "ignore_case"):
            return self._tool("grep", pattern, start, include, ignore_case=True)
        return self._tool("grep", f"(?i){pattern}", start, include)

    def execute(self, command: str, timeout: float | None = None) -> Result:
        """Run a command on the machine that has the files.

        Raises:
            SandboxUnavailable: The object has no `execute`, or this backend is read-only.
        """
        return self._run("execute", command, timeout)

    def execute_python(self, code: str, timeout: float | None = None) -> Result:
        return self._run("execute_python", code, timeout)

    def stat(self, path: str) -> FileStat | None:
        path = self.resolve(path)
        if path == "/":
            return FileStat("directory")
        parent, _, name = path.rpartition("/")
        try:
            entries = self._entries(parent or "/")
        except FileError:
            return None
        found = next((entry for entry in entries if entry.name == name), None)
        return None if found is None else FileStat(found.type, found.size or 0)

    def open_file(self, path: str) -> OpenedFile:
        path = self.resolve(path)
        data = self._bytes(path)
        version = hashlib.sha256(data).hexdigest()
        stream = cast(Any, BytesIO(data))
        return OpenedFile(stream, FileStat("file", len(data), 0.0, version))

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        path = self.resolve(path)
        entries = sorted(self._entries(path), key=lambda entry: entry.name)
        limit = self.limits.directory
        return Listing(entries[:limit], len(entries) > limit)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        self._check_writable(path)
        path = self.resolve(path)
        if if_version is not None:
            self._check_version(path, if_version)
        if "write_bytes" in self._has:
            result = self._guarded("write_bytes", lambda: self.inner.write_bytes(meant(path), data))
            if isinstance(result, dict) and "error" in result:
                raise FileAccessFailed(str(result["error"]), path)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise FileAccessFailed(
                f"the files of {self.name} hold text only: it has no write_bytes.", path
            ) from None
        self._require(self._tool("write_file", meant(path), text), path)

    def _check_version(self, path: str, version: str) -> None:
        try:
            found = self.open_file(path).stat.version
        except FileMissing:
            found = ABSENT
        if found == version:
            return
        if version == ABSENT:
            raise appeared(path)
        if found == ABSENT:
            raise FileChanged("deleted since you read it. Read it again.", path)
        raise changed(path)

    def _theirs(self, path: str) -> str:
        """Return the path for the program: with real characters instead of Vel's escapes."""
        return meant(self.resolve(path))

    def _check_writable(self, path: str) -> None:
        if not self.supports_write:
            raise ReadOnlyPath(_READ_ONLY, self.resolve(path))

    def _entries(self, path: str) -> list[Entry]:
        """Return the entries of a directory. Raises FileError if the program cannot list it."""
        result = self._require(self._tool("ls", meant(path)), path)
        given = result.get("entries")
        if not isinstance(given, list):
            raise FileAccessFailed(f"ls of {self.name} returned no list `entries`.", path)
        entries = []
        for item in given:
            name = item.get("name") if isinstance(item, dict) else None
            name = name.rstrip("/") if isinstance(name, str) else ""
            if name in ("", ".", "..") or "/" in name:
                continue  # no path can name the file
            size = item.get("size")
            kind = _TYPES.get(item.get("type"), "other")
            is_size = isinstance(size, int) and size >= 0
            entries.append(Entry(path, shown(name), kind, size if is_size else None))
        return entries

    def _bytes(self, path: str) -> bytes:
        most = self.limits.scan
        if "read_bytes" in self._has:
            data = self._guarded("read_bytes", lambda: self.inner.read_bytes(meant(path), most))
            if isinstance(data, dict) and "error" in data:
                raise FileAccessFailed(str(data["error"]), path)
            if not isinstance(data, bytes | bytearray | memoryview):
                raise FileAccessFailed(f"read_bytes of {self.name} returned no bytes.", path)
            data = bytes(data)
        else:
            data = self._text(path, most).encode()
        if len(data) > most:
            raise FileTooLarge(f"more than {most} bytes, the limit here.", path)
        return data

    def _text(self, path: str, most: int) -> str:
        """Return the content of a text file, joined from the pages of the program's read_file.

        Line numbers are removed.
        """
        found = self.stat(path)
        if found is None:
            raise FileMissing("no such file. List its parent with ls.", path)
        if found.type == "directory":
            raise IsDirectory("a directory. List it with ls.", path)
        lines: list[str] = []
        size = 0
        while True:
            page = self._require(self._tool("read_file", meant(path), len(lines), _PAGE), path)
            content = page.get("content")
            if not isinstance(content, str):
                raise FileAccessFailed(f"read_file of {self.name} returned no text.", path)
            read = [_without_number(line) for line in content.split("\n")] if content else []
            lines += read
            size += len(content)
            if size > most:
                raise FileTooLarge(f"more than {most} bytes, the limit here.", path)
            if not page.get("has_more"):
                return "\n".join(lines)
            if not read:
                raise FileAccessFailed(f"read_file of {self.name} returned an empty page.", path)

    def _require(self, result: Result, path: str) -> Result:
        """Return `result` unless it is an error result, for which it raises the FileError."""
        if "error" not in result:
            return result
        text = str(result["error"])
        if path != "/" and "not a directory" in text.lower():
            raise NotDirectory(text, path)
        raise FileAccessFailed(text, path)

    def _accepts(self, method: str, parameter: str) -> bool:
        return bool({parameter, _ANY} & self._parameters[method])

    def _accepted(self, method: str, parameter: str, value: Any) -> dict[str, Any]:
        if not self._accepts(method, parameter):
            raise InvalidRequest(
                f"{method} of these files has no {parameter}: call it without {parameter}."
            )
        return {parameter: value}

    def _tool(self, method: str, *arguments: Any, **named: Any) -> Result:
        """Call a tool of the program, and return its result as JSON values."""

        def call() -> Result:
            value = getattr(self.inner, method)(*arguments, **named)
            return plain_result(value, self.limits.own_result)

        return cast(Result, self._guarded(method, call))

    def _run(self, method: str, source: str, timeout: float | None) -> Result:
        if method not in self._has or not self.supports_write:
            raise SandboxUnavailable(f"The files of {self.name} have no {method}.")
        return self._tool(method, source, timeout)

    def _guarded(self, method: str, function: Callable[[], T]) -> T | Result:
        """Call a function of the program. Return an error result if the function fails."""
        try:
            return cast(T, self._call(function))
        except FileError as error:
            return {"error": str(error)}
        except NotPlain as problem:
            return {"error": f"{method} of {self.name} returned {problem}."}
        except TimeoutError as error:
            reason = text_of(error, 300) or "it took too long"
            return {"error": f"{method} of {self.name} was given up: {reason}."}
        except Exception as error:  # noqa: BLE001  # code of a program
            reason = text_of(error, 500)
            return {"error": f"{method} of {self.name} failed: {type(error).__name__}: {reason}"}


def _parameters(method: Any) -> frozenset[str]:
    """Return the names of a method's parameters, and _ANY if it accepts all names."""
    try:
        found = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(_ANY if one.kind is one.VAR_KEYWORD else name for name, one in found.items())


def _without_number(line: str) -> str:
    found = _NUMBERED.fullmatch(line)
    return line if found is None else found[2]
