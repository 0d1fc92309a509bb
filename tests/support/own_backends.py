"""Backends as programs write them: files in a dictionary, and their faulty relatives."""

from __future__ import annotations

import asyncio
import fnmatch
import re
import threading
from typing import Any


class OwnFiles:
    """Exactly the six methods of the protocol, without anything else."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def ls(self, path: str) -> dict[str, Any]:
        below = path.rstrip("/") + "/"
        found: dict[str, dict[str, Any]] = {}
        for file in self.files:
            if file.startswith(below):
                name, is_directory, _ = file[len(below) :].partition("/")
                kind = "directory" if is_directory else "file"
                found[name] = {"name": name, "type": kind, "path": below + name}
        return {"path": path, "entries": list(found.values())}

    def read_file(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        if path not in self.files:
            return {"error": f"File not found: {path}"}
        lines = self.files[path].split("\n")
        part = lines[offset : offset + limit]
        numbered = [f"{at + offset + 1:6d} | {line}" for at, line in enumerate(part)]
        return {
            "path": path,
            "content": "\n".join(numbered),
            "lines_returned": len(part),
            "total_lines": len(lines),
            "offset": offset,
            "has_more": offset + limit < len(lines),
        }

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        self.files[path] = content
        return {"status": "ok", "path": path, "lines": content.count("\n") + 1}

    def edit_file(self, path: str, old_text: str, new_text: str) -> dict[str, Any]:
        if path not in self.files:
            return {"error": f"File not found: {path}"}
        if (count := self.files[path].count(old_text)) != 1:
            return {"error": f"old_text appears {count} times."}
        self.files[path] = self.files[path].replace(old_text, new_text)
        return {"status": "ok", "path": path, "lines_changed": 1}

    def glob(self, pattern: str) -> dict[str, Any]:
        matches = [path for path in self.files if fnmatch.fnmatch(path, pattern)]
        return {"pattern": pattern, "matches": sorted(matches), "count": len(matches)}

    def grep(self, pattern: str, path: str, include: str | None) -> dict[str, Any]:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            return {"error": f"Invalid pattern: {error}"}
        matches = [
            {"file": file, "line": number, "content": line}
            for file, text in self.files.items()
            if file.startswith(path) and (include is None or fnmatch.fnmatch(file, include))
            for number, line in enumerate(text.split("\n"), 1)
            if wanted.search(line)
        ]
        return {
            "pattern": pattern,
            "path": path,
            "matches": matches[:100],
            "total_matches": len(matches),
            "truncated": len(matches) > 100,
        }


class RemoteMachine(OwnFiles):
    """Files and commands on another machine."""

    def execute(self, command: str, timeout: float) -> dict[str, Any]:
        if command.startswith("echo out"):
            return {"stdout": "out\n", "stderr": "", "exit_code": 3, "success": False}
        return {"stdout": f"{command} within {timeout:g}", "exit_code": 0, "success": True}


class BadText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Faulty(OwnFiles):
    """A backend whose read_file fails in the way that the path names."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = threading.Event()
        self.goes_on = threading.Event()

    def read_file(self, path: str, offset: int, limit: int) -> Any:
        how = path.removeprefix("/")
        deep: list[Any] = []
        deep.append(deep)

        async def late() -> dict[str, Any]:
            await asyncio.sleep(0)
            return {}

        def hang() -> dict[str, Any]:
            self.hangs.set()
            self.goes_on.wait()
            return {}

        def raises(error: BaseException) -> Any:
            raise error

        ways: dict[str, Any] = {
            "raises": lambda: raises(ConnectionError("the storage is away")),
            "exits": lambda: raises(SystemExit(3)),
            "bad text": lambda: raises(BadText()),
            "none": lambda: None,
            "list": lambda: ["a"],
            "coroutine": late,
            "object": lambda: {"content": object()},
            "bytes": lambda: {"content": b"abc"},
            "number": lambda: {"content": float("nan")},
            "huge number": lambda: {"content": 10**5_000},
            "keys": lambda: {1: "a"},
            "deep": lambda: {"content": deep},
            "huge": lambda: {"content": "x" * 50_000_000},
            "nul": lambda: {"content": "a\0b \udcff"},
            "hangs": hang,
        }
        return ways[how]() if how in ways else super().read_file(path, offset, limit)
