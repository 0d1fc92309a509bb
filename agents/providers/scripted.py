"""The offline model: plays a script instead of calling a language model.

It has no state: the next turn depends on the conversation alone, so a run that was interrupted,
restarted or moved to another process continues correctly.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    ModelLimits,
    PartDelta,
    PartStarted,
    PromptHead,
    ProviderError,
    Reply,
    Role,
    Usage,
)
from agents.providers.prices import SCRIPTED_PREFIX
from agents.providers.scripts import SCRIPTS, script_name
from agents.providers.scripts.base import Message, Script, ScriptFunction, ScriptTurn

FILE_PREFIX = "file:"
FILES_REFUSED = (
    "scripts in files are played by programs of this machine's own user, and for others only from "
    "the directory that the operator has set (VEL_SCRIPTS_DIR)"
)
LIMITS = ModelLimits(context_window=200_000, max_output=16_000)
BYTES_PER_TOKEN = 4
TEXT_PIECES = 6


class ScriptedConversation:
    """See `Conversation`. Adjacent messages of the same role become one, as on the wire."""

    def __init__(self, head: PromptHead, script: ScriptFunction) -> None:
        self.head = head
        self.script = script
        self.messages: list[Message] = []
        self.size = len(head.system) + len(json.dumps(head.tools))

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`."""
        blocks = json.loads(blocks_json)
        if not isinstance(blocks, list) or not blocks:
            raise ValueError(f"a message needs a JSON array of blocks, got {blocks_json[:80]!r}")
        self.size += len(blocks_json.encode())
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].extend(blocks)
        else:
            self.messages.append({"role": role, "content": blocks})


class ScriptedProvider:
    """Plays the script in the model's name: `echo`, or `file:PATH` of a JSON file.

    The file has `{"turns": [{"text", "tool_calls": [{"name", "input"}], "delay"}]}`, all optional
    except `turns`. `scripts` may be extended: tests add their own. Files must be below `directory`;
    None: files are not allowed.
    """

    name = "scripted"
    is_scripted = True

    def __init__(
        self, scripts: Mapping[str, ScriptFunction] = SCRIPTS, directory: Path | None = None
    ) -> None:
        self.scripts = dict(scripts)
        self.directory = directory

    def conversation(self, head: PromptHead) -> ScriptedConversation:
        """See `Provider.conversation`. Raises `ProviderError` (not_found) for unknown scripts.

        The code is permission for a file that is not below the directory.
        """
        if head.model.startswith(FILE_PREFIX):
            path = script_path(head.model, self.directory)
            return ScriptedConversation(head, read_script(str(path)))
        name = script_name(head.model, [tool["name"] for tool in head.tools])
        script = self.scripts.get(name)
        if script is None:
            raise ProviderError(
                f"no script is called {head.model!r}; there are "
                f"{', '.join(sorted(self.scripts))} and {FILE_PREFIX}PATH",
                code="not_found",
            )
        return ScriptedConversation(head, script)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        if not isinstance(conversation, ScriptedConversation):
            raise TypeError(f"wanted a conversation of this provider, got {type(conversation)}")
        turn = conversation.script(conversation.messages)
        history = json.dumps(conversation.messages)
        blocks = _blocks(turn, history)
        events = [event for index, block in enumerate(blocks) for event in _events(index, block)]
        for event in events:
            await asyncio.sleep(turn.delay / len(events))
            yield event
        yield Reply(
            blocks,
            "tool_use" if turn.tool_calls else "end_turn",
            _estimate(conversation.head, history, blocks),
            SCRIPTED_PREFIX + conversation.head.model,
        )

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`. Scripts ignore schemas."""
        return ""

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`. Scripts ignore pictures."""
        return False

    async def limits(self, model: str) -> ModelLimits:
        """See `Provider.limits`. The same for every script."""
        return LIMITS

    async def close(self) -> None:
        """Do nothing."""


def script_path(model: str, directory: Path | None) -> Path:
    """Return the path of the script `file:PATH`, which must be below `directory`.

    Raises `ProviderError` (permission) with a constant message, so that it does not reveal whether
    other files exist. Links in the directory are allowed, since the operator controls it.
    """
    if directory is not None:
        top = os.path.abspath(directory)
        path = os.path.normpath(os.path.join(top, model.removeprefix(FILE_PREFIX)))
        if os.path.commonpath((top, path)) == top and "\0" not in path:
            return Path(path)
    raise ProviderError(FILES_REFUSED, code="permission")


def read_script(path: str) -> Script:
    """Return the script in a JSON file. Raises `ProviderError` (not_found, invalid_request).

    The error does not quote the file: the person who chose its name may not be allowed to read it.
    """
    try:
        # Reading a pipe or a device could block forever, and this is on the event loop.
        if Path(path).exists() and not Path(path).is_file():
            raise ProviderError(f"the script {path} is no file", code="not_found")
        turns = json.loads(Path(path).read_text(encoding="utf-8"))["turns"]
        return Script(
            [
                ScriptTurn(
                    turn.get("text", ""),
                    [(call["name"], call.get("input", {})) for call in turn.get("tool_calls", [])],
                    turn.get("delay", 0.0),
                )
                for turn in turns
            ]
        )
    except OSError as error:
        raise ProviderError(
            f"the script {path} cannot be read: {error.strerror}", code="not_found"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProviderError(
            f'the script {path} is not of the form {{"turns": [{{"text", "tool_calls": '
            '[{"name", "input"}], "delay"}]}',
            code="invalid_request",
        ) from error


def _blocks(turn: ScriptTurn, history: str) -> list[Block]:
    """Return the reply's blocks. Call ids derive from the history, so they survive a restart."""
    blocks: list[Block] = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
    digest = hashlib.sha256(history.encode()).hexdigest()[:16]
    for position, (tool, tool_input) in enumerate(turn.tool_calls):
        call_id = f"call_{digest}_{position}"
        blocks.append({"type": "tool_use", "id": call_id, "name": tool, "input": tool_input})
    return blocks


def _events(index: int, block: Block) -> list[ModelEvent]:
    if block["type"] == "tool_use":
        return [
            PartStarted(index, "tool_input", block["id"], block["name"]),
            PartDelta(index, "tool_input", json.dumps(block["input"])),
        ]
    text = block["text"]
    size = max(1, -(-len(text) // TEXT_PIECES))
    deltas = [
        PartDelta(index, "text", text[start : start + size]) for start in range(0, len(text), size)
    ]
    return [PartStarted(index, "text"), *deltas]


def _estimate(head: PromptHead, history: str, blocks: list[Block]) -> Usage:
    prompt = len(head.system) + len(json.dumps(head.tools)) + len(history)
    return Usage(
        input=prompt // BYTES_PER_TOKEN, output=max(1, len(json.dumps(blocks)) // BYTES_PER_TOKEN)
    )
