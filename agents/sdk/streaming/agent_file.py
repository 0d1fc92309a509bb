"""A file that an agent has written for the program's user."""

from __future__ import annotations

import mimetypes
import posixpath
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file that an agent has written for you.

    `path` is the path that the agent sees, and `size` is in bytes. `host_path` is the path of the
    copy on this machine, or of the file itself in a project without `outputs_dir`. If there is
    neither, it is None and `problem` has the reason.

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
