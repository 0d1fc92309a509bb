"""Long results of tools go to files of the thread, and the model gets their head and tail.

The file is written before the result is stored.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from agents.engine.calls.results import clean_text
from agents.engine.prompt.conversation import cut_middle
from agents.engine.prompt.window import BYTES_PER_TOKEN, usable_tokens
from agents.events.append import dump
from agents.features.compaction.options import ContextOptions
from agents.features.compaction.result_files import Kept, call_place, keep_text
from agents.kernel.middleware import LoadContext, RunContext, ToolCallRequest, ToolHandler
from agents.kernel.window import Window
from agents.middleware.base import Middleware, ToolResult
from agents.providers.base import Block
from agents.settings import ContextSettings

PAGED = frozenset({"read_file", "grep", "glob", "ls", "search_transcript"})
"""Tools whose results are parts of stored data. They are cut, and get no file; otherwise reading a
file would write another one."""
NOTE_BYTES = 400
BULK = 0.4
"""If one text is at least this part of a result object, the file contains it as text, not as
JSON."""
SHARE = 10
"""One result can take a tenth of the longest prompt."""
WHOLE_SHARE = 4
"""A result that the model needs as a whole can take a fourth."""
MIN_RESULT_BYTES = 1_000


class EvictionMiddleware(Middleware):
    """Writes each long result to a file, and lets the model read its head and tail."""

    name = "eviction"

    def load(self, context: LoadContext) -> ContextOptions | None:
        options = context.spec.option(ContextOptions)
        return options if options.context_management else None

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        result = await handler(call)
        options = run.state(ContextOptions)
        limit = longest_result(run.window, is_whole=call.is_whole, most=options.evict_bytes)
        if result.blocks:
            return await _blocks(run, call, result, limit)
        content = result.content
        text = content if isinstance(content, str) else dump(content)
        if len(text) <= limit and (text.isascii() or len(text.encode("utf-8", "replace")) <= limit):
            return result
        if call.row.tool in PAGED:
            return replace(result, content=_page(call.row.tool, content, limit))
        text = clean_text(readable_text(content))
        kept = await _keep(run, call, text)
        return replace(result, content=_excerpt(run, kept, text, limit))


def longest_result(window: Window, *, is_whole: bool, most: int | None = None) -> int:
    """Return the maximum bytes of a tool's result that the model gets.

    `is_whole`: see `Tool.is_whole`. `most` is the agent's own limit for results that are not whole;
    None: that of the settings.
    """
    room = usable_tokens(window) * BYTES_PER_TOKEN
    if is_whole:
        return max(MIN_RESULT_BYTES, room // WHOLE_SHARE)
    share = min(most or ContextSettings.now().EVICT_BYTES, room // SHARE)
    return max(MIN_RESULT_BYTES, share)


async def _blocks(
    run: RunContext, call: ToolCallRequest, result: ToolResult, limit: int
) -> ToolResult:
    texts = [block["text"] for block in result.content if block["type"] == "text"]
    whole = clean_text("\n\n".join(texts))
    if len(whole.encode()) <= limit:
        return result
    kept = await _keep(run, call, whole)
    blocks: list[Block] = [
        {"type": "text", "text": _excerpt(run, kept, whole, limit)},
        *(block for block in result.content if block["type"] != "text"),
    ]
    return replace(result, content=blocks)


async def _keep(run: RunContext, call: ToolCallRequest, text: str) -> Kept:
    row = call.row
    place = call_place(run.row.pk, row.turn, row.position)
    # The call has ended, so it keeps its result even if it is cancelled now.
    return await run.in_thread(keep_text, run.files, row.tool, place, text, to_its_end=True)


def _excerpt(run: RunContext, kept: Kept, text: str, limit: int) -> str:
    """Return a note on how to read on, and the head and tail of `text`."""
    room = max(limit - NOTE_BYTES, limit // 2)
    return f"[{_note(run, kept)}]\n{cut_middle(text, room)}"


def _note(run: RunContext, kept: Kept) -> str:
    if not kept.path:
        return (
            f"This result is too long: here are its head and tail. The rest was not kept "
            f"({kept.problem}) Ask for less at a time."
        )
    lost = f", of which {kept.cut:,} bytes in the middle were too many for a file" * bool(kept.cut)
    return (
        f"This result is too long: here are its head and tail. The whole is in {kept.path} "
        f"({kept.size:,} bytes{lost}). {_how_to_read(run.tools, kept.path)}"
    )


def _how_to_read(tools: Container[str], path: str) -> str:
    if "read_file" in tools:
        more = " or search it with grep" if "grep" in tools else ""
        return (
            f"Read on with read_file (path, offset, limit, line_offset){more}; do not read it in "
            "one call."
        )
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
        return _part_of_line(page, lines[0], limit - NOTE_BYTES)
    following = page["offset"] + len(fitting)
    return {
        **page,
        "content": "\n".join(fitting),
        "lines_returned": len(fitting),
        "has_more": True,
        "note": f"cut to fit the conversation: continue with offset={following}",
    }


def _part_of_line(page: dict[str, Any], line: str, room: int) -> dict[str, Any]:
    """Return the beginning of a line that alone is too long, with a note on its rest."""
    number, _, part = line.partition(" | ")
    while (size := len(dump(part).encode())) > room:
        part = part[: len(part) * room // size]
    following = page.get("line_offset", 0) + len(part)
    return {
        **page,
        "content": f"{number} | {part}",
        "lines_returned": 1,
        "has_more": True,
        "note": (
            f"line cut to fit the conversation: continue with offset={page['offset']}, "
            f"line_offset={following}"
        ),
    }
