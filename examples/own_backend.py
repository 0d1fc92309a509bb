"""Your own backend for files and commands: tested, then used by an agent."""

import asyncio
import os
import re
from fnmatch import fnmatchcase
from typing import Any

from vel import FilesystemMiddleware, RunInterrupted, create_deep_agent, scripted_model
from vel.testing.backends import BackendTests, problems_of

SCRIPT: list[dict[str, Any] | str] = [
    {"tool_calls": [("write_file", {"path": "/plan.md", "content": "1. Measure\n2. Cut\n"})]},
    {"tool_calls": [("edit_file", {"path": "/plan.md", "old_text": "Cut", "new_text": "Saw"})]},
    {"tool_calls": [("execute", {"command": "upload /plan.md"})]},
    "The plan is uploaded.",
]


class Bucket:
    """Files in an object storage. This example uses a dictionary instead."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def ls(self, path: str) -> dict[str, Any]:
        above = path.rstrip("/") + "/"
        entries = {}
        for name in self.files:
            if name.startswith(above):
                first, below, _ = name.removeprefix(above).partition("/")
                entries[first] = {"name": first, "type": "directory" if below else "file"}
        if not entries and path != "/":
            return {"error": f"{path}: no such directory"}
        return {"path": path, "entries": list(entries.values())}

    def read_file(self, path: str, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        if path not in self.files:
            return {"error": f"{path}: no such file"}
        lines = self.files[path].splitlines()
        shown = list(enumerate(lines, start=1))[offset : offset + limit]
        return {
            "content": "\n".join(f"{number:6} | {line}" for number, line in shown),
            "total_lines": len(lines),
            "has_more": offset + limit < len(lines),
        }

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        self.files[path] = content
        return {"status": "ok", "path": path}

    def edit_file(self, path: str, old_text: str, new_text: str) -> dict[str, Any]:
        found = self.files.get(path, "").count(old_text)
        if found != 1:
            return {"error": f"{path} contains the text {found} times"}
        return self.write_file(path, self.files[path].replace(old_text, new_text))

    def glob(self, pattern: str) -> dict[str, Any]:
        wanted = "/" + pattern.lstrip("/")
        return {"matches": [path for path in sorted(self.files) if fnmatchcase(path, wanted)]}

    def grep(self, pattern: str, path: str = "/", include: str | None = None) -> dict[str, Any]:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            return {"error": f"invalid pattern: {error}"}
        matches = [
            {"file": name, "line": number, "content": line}
            for name, text in sorted(self.files.items())
            if name.startswith(path) and fnmatchcase(name, f"*{include or ''}")
            for number, line in enumerate(text.splitlines(), start=1)
            if wanted.search(line)
        ]
        return {"matches": matches}


class Machine(Bucket):
    """The same files, with commands that do not run in a shell."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[str] = []

    def execute(self, command: str, timeout: float = 30) -> dict[str, Any]:
        self.commands.append(command)
        return {"exit_code": 0, "stdout": f"done: {command}\n", "stderr": ""}


class Checks(BackendTests):
    """The tests for backends. pytest collects the class if its name starts with `Test`."""

    def backend(self) -> Bucket:
        return Bucket()


async def main() -> None:
    failed = problems_of(Checks())
    print(failed or "All checks of the backend pass.")

    machine = Machine()
    key = os.environ.get("ANTHROPIC_API_KEY")
    agent = create_deep_agent(
        model={"provider": "anthropic"} if key else scripted_model(SCRIPT),
        middleware=[FilesystemMiddleware(machine)],
        interrupt_on={"execute": True},
    )
    async with agent:
        try:
            print(await agent.run("Write a plan and upload it with `upload`.", "plan"))
        except RunInterrupted:
            for request in await agent.pending("plan"):
                print("asked:", request.metadata["input"]["command"])
            print(await agent.resume("plan", {"command": "upload --dry-run /plan.md"}))
    print(machine.files, machine.commands)


if __name__ == "__main__":
    asyncio.run(main())
