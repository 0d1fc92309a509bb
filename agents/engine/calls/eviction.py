"""Long results of tools go to files of the thread, and the model gets their head and tail.

The file is written before the result is stored, and its name is the same for each attempt of the
call, so a crash leaves one file and one result. An agent cannot guess the name and create the file
first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agents.engine.calls.results import clean_text
from agents.engine.files.snapshots import to_its_end
from agents.engine.prompt.clipping import cut_middle
from agents.engine.prompt.result_files import call_place, paths_for
from agents.engine.prompt.window import longest_result
from agents.engine.session import Session
from agents.engine.storage.journal_rows import Call
from agents.events.append import dump
from agents.middleware.base import ToolResult
from agents.providers.base import Block
from agents.settings import MessageSettings
from sandbox.backends.protocol import FileBackend
from sandbox.errors import FileError, ReadOnlyPath, SandboxError, StorageFull

PAGED = frozenset({"read_file", "grep", "glob", "ls", "search_transcript"})
"""Tools whose results are parts of stored data. They are cut, and get no file; otherwise reading a
file would write another one."""
NOTE_BYTES = 400
BULK = 0.4
"""If one text is at least this part of a result object, the file contains it as text, not as
JSON."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The file with a long text, or the reason why there is none."""

    path: str = ""
    problem: str = ""
    size: int = 0
    """The size of the text in bytes."""
    cut: int = 0
    """The number of bytes that do not fit into a file."""


async def within_bounds(session: Session, call: Call, result: ToolResult) -> ToolResult:
    """Return `result` if it is short, else its head and tail with the path of its file."""
    tool = session.toolset.tools.get(call.tool)
    is_whole = tool is not None and tool.is_whole
    limit = longest_result(session.window, is_whole=is_whole)
    if result.blocks:
        return await _blocks(session, call, result, limit)
    content = result.content
    text = content if isinstance(content, str) else dump(content)
    if len(text) <= limit and (text.isascii() or len(text.encode("utf-8", "replace")) <= limit):
        return result
    if call.tool in PAGED:
        return replace(result, content=_page(call.tool, content, limit))
    text = clean_text(readable_text(content))
    kept = await _keep(session, call, text)
    return replace(result, content=_excerpt(session, kept, text, limit))


async def _blocks(session: Session, call: Call, result: ToolResult, limit: int) -> ToolResult:
    texts = [block["text"] for block in result.content if block["type"] == "text"]
    whole = clean_text("\n\n".join(texts))
    if len(whole.encode()) <= limit:
        return result
    kept = await _keep(session, call, whole)
    blocks: list[Block] = [
        {"type": "text", "text": _excerpt(session, kept, whole, limit)},
        *(block for block in result.content if block["type"] != "text"),
    ]
    return replace(result, content=blocks)


async def _keep(session: Session, call: Call, text: str) -> Kept:
    place = call_place(session.writer.run_id, call.turn, call.position)
    keep = partial(keep_text, session.files.backend, call.tool, place, text)
    return await to_its_end(session.threads, keep)


def keep_text(files: Callable[[], FileBackend], kind: str, place: str, text: str) -> Kept:
    """Write a text into the thread's shared files, with the backend of tools. Blocks."""
    data = text.encode("utf-8")
    limit = MessageSettings.now().RESULT_BYTES
    cut = max(0, len(data) - limit)
    if cut:
        data = cut_middle(data.decode("utf-8"), limit).encode("utf-8")
    path, problem = _write(files, paths_for(kind, place), data)
    return Kept(path, problem, len(data), cut)


def _write(
    backend: Callable[[], FileBackend], paths: Sequence[str], data: bytes
) -> tuple[str, str]:
    """Write the first possible path. Return the path and "", or "" and the problem."""
    problem = ""
    try:
        files = backend()
        for path in paths:
            try:
                files.write_bytes(path, data)
            except (StorageFull, ReadOnlyPath):
                raise
            except FileError as error:
                problem = str(error)
            else:
                return path, ""
    except (SandboxError, OSError) as error:
        problem = str(error)
    return "", problem


def _excerpt(session: Session, kept: Kept, text: str, limit: int) -> str:
    """Return a note on how to read on, and the head and tail of `text`."""
    room = max(limit - NOTE_BYTES, limit // 2)
    return f"[{_note(session, kept)}]\n{cut_middle(text, room)}"


def _note(session: Session, kept: Kept) -> str:
    if not kept.path:
        return (
            f"This result is too long: here are its head and tail. The rest was not kept "
            f"({kept.problem}) Ask for less at a time."
        )
    lost = f", of which {kept.cut:,} bytes in the middle were too many for a file" * bool(kept.cut)
    return (
        f"This result is too long: here are its head and tail. The whole is in {kept.path} "
        f"({kept.size:,} bytes{lost}). {_how_to_read(session.toolset.tools, kept.path)}"
    )


def _how_to_read(tools: Container[str], path: str) -> str:
    if "read_file" in tools:
        more = " or search it with grep" if "grep" in tools else ""
        return f"Read on with read_file (path, offset, limit){more}; do not read all of it at once."
    for tool in ("execute_in_sandbox", "execute"):
        if tool in tools:
            return f"Read on with {tool}, as in: sed -n '1,100p' {path}"
    return ""


def readable_text(content: Any) -> str:
    """Return a result as the text of a file that can be read in pages of lines."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        texts = {key: value for key, value in content.items() if isinstance(value, str)}
        bulk = max(texts, key=lambda key: len(texts[key]), default="")
        rest = {key: value for key, value in content.items() if key != bulk}
        if bulk and len(texts[bulk]) >= BULK * len(dump(content)):
            return f"{dump(rest)}\n\n{bulk}:\n{texts[bulk]}"
    return json.dumps(content, ensure_ascii=False, indent=1)


def _page(tool: str, content: Any, limit: int) -> Any:
    """Return a part of a page that is too long, with a note on how to continue."""
    if tool == "read_file" and isinstance(content, dict) and "content" in content:
        return _shorter_page(content, limit)
    text = content if isinstance(content, str) else dump(content)
    return (
        f"{cut_middle(clean_text(text), limit - NOTE_BYTES)}\n"
        "[This was too long for the conversation and was cut: ask for less, with a narrower path "
        "or pattern.]"
    )


def _shorter_page(page: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the first lines of a read_file that fit, at least a part of the first line."""
    lines: Sequence[str] = page["content"].split("\n")
    room = limit - NOTE_BYTES
    fitting: list[str] = []
    for line in lines:
        room -= len(dump(line).encode())
        if room < 0:
            break
        fitting.append(line)
    if not fitting:
        fitting = [cut_middle(lines[0], max(limit - NOTE_BYTES, limit // 2) // 2)]
    following = page["offset"] + len(fitting)
    return {
        **page,
        "content": "\n".join(fitting),
        "lines_returned": len(fitting),
        "has_more": True,
        "note": f"cut to fit the conversation: go on with offset={following}",
    }
