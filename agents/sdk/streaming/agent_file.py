"""A file that an agent has written for the program's user."""

from __future__ import annotations

import mimetypes
import posixpath
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file. `path` is the agent's name for it, and `size` is in bytes.

    `host_path` is where the file is on this machine. None: there is no such copy, and `problem` has
    the reason.

    >>> write = ("write_file", {"path": "/report.md", "content": "All is well."})
    >>> agent = create_deep_agent(scripted_model([{"tool_calls": [write]}, "Done."]), sandbox=False)
    >>> asyncio.run(agent.run("Write a report"))
    'Done.'
    >>> [file.name for file in asyncio.run(agent.files())]
    ['report.md']
    """

    path: str
    size: int
    host_path: str | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def to_dict(self) -> dict[str, Any]:
        media_type = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        return {
            "path": self.path,
            "host_path": self.host_path,
            "size": self.size,
            "media_type": media_type,
            **({"problem": self.problem} if self.problem else {}),
        }
