"""A thread's history in the form for a provider, with pictures and with shortened blocks.

Rows refer to pictures by their ids. The bytes inserted here are always the same, so the prompt's
prefix does not change (invariant 5). Shortening with the same limit always gives the same bytes,
too. Blocks keep their ids, and all but pictures their types, so that calls and
results stay pairs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.engine.storage.database import Database
from agents.events.append import dump
from agents.models import MessageImage, Run
from agents.providers.base import Block, Conversation, PromptHead, Provider, Role
from agents.settings import ModelSettings

STORED = "stored"
_MARK = f'"source":{{"type":"{STORED}"'


def stored_image(image_id: str, width: int, height: int) -> Block:
    """Return the block that refers to a stored picture. The sizes are in pixels."""
    source = {"type": STORED, "id": image_id, "width": width, "height": height}
    return {"type": "image", "source": source}


async def takes_images(provider: Provider, model: str) -> bool:
    return model in ModelSettings.now().IMAGE_MODELS or await provider.takes_images(model)


async def conversation_of(
    database: Database,
    provider: Provider,
    run: Run,
    head: PromptHead,
    history: Sequence[tuple[Role, str]],
) -> Conversation:
    """Return the conversation: `history` after the prompt `head`.

    Pictures are inserted only from threads that the owner of `run` owns.
    """
    conversation = provider.conversation(head)
    for role, blocks in await with_pictures(database, provider, run, head.model, history):
        conversation.append(role, blocks)
    return conversation


async def with_pictures(
    database: Database,
    provider: Provider,
    run: Run,
    model: str,
    history: Sequence[tuple[Role, str]],
) -> list[tuple[Role, str]]:
    """Return `history` with the bytes of its pictures, from threads of the owner of `run`."""
    ids = [image_id for role, blocks in history for image_id in _ids_in(role, blocks)]
    images: Mapping[str, Block] = {}
    if ids and await takes_images(provider, model):
        images = await database.run(_read_images, run.owner_id, ids)
    return [(role, _with_bytes(role, blocks, images)) for role, blocks in history]


def _is_reference(role: Role, block: Any) -> bool:
    return role == "user" and block["type"] == "image" and block["source"]["type"] == STORED


def _ids_in(role: Role, blocks: str) -> list[str]:
    if _MARK not in blocks:
        return []
    return [block["source"]["id"] for block in json.loads(blocks) if _is_reference(role, block)]


def _with_bytes(role: Role, blocks: str, images: Mapping[str, Block]) -> str:
    """Return blocks with the pictures' bytes, or a note for a missing or unsupported picture."""
    if _MARK not in blocks:
        return blocks
    gone = {"type": "text", "text": IMAGE_LEFT_OUT}
    return dump(
        [
            images.get(block["source"]["id"], gone) if _is_reference(role, block) else block
            for block in json.loads(blocks)
        ]
    )


def _read_images(owner_id: int, ids: Sequence[str]) -> dict[str, Block]:
    rows = MessageImage.objects.filter(pk__in=ids, thread__owner=owner_id)
    return {row.pk: _block(row) for row in rows}


def _block(row: MessageImage) -> Block:
    data = base64.b64encode(bytes(row.data)).decode()
    source = {"type": "base64", "media_type": row.media_type, "data": data}
    return {"type": "image", "source": source}


IMAGE_LEFT_OUT = "[image left out]"
INPUT_SHARE = 4
"""The limit for the whole input of a call, as a multiple of the limit for one of its strings."""


def cut_middle(text: str, limit: int, note: str = "") -> str:
    """Return `text`, or its start and end if it has more than `limit` bytes.

    A remark in the middle gives the number of omitted bytes, followed by `note`. The result exceeds
    `limit` by this remark.
    """
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    head, tail = data[: limit * 2 // 3], data[len(data) - limit // 3 :]
    missing = len(data) - len(head) - len(tail)
    return (
        head.decode("utf-8", "ignore")
        + f"\n[… {missing:,} bytes left out{note} …]\n"
        + tail.decode("utf-8", "ignore")
    )


def clip_blocks(content: str, limit: int, note: str = "") -> tuple[str, int]:
    """Shorten the texts in a JSON array of blocks to about `limit` bytes each, and omit pictures.

    Returns the array and the number of changed blocks. An array without long texts and pictures
    keeps all its bytes. `note` is that of `cut_middle`.
    """
    if _is_short(content, limit) and '"image"' not in content:
        return content, 0
    blocks = json.loads(content)
    clipped = [_clip_block(block, limit, note) for block in blocks]
    changed = sum(new != old for new, old in zip(clipped, blocks, strict=True))
    return (dump(clipped), changed) if changed else (content, 0)


def clip_result(result: str, limit: int) -> str:
    """Shorten a tool's result, the JSON text of a string or of a list of blocks, and omit pictures.

    `limit` applies to each text, in bytes.
    """
    if _is_short(result, limit) and '"image"' not in result:
        return result
    content = json.loads(result)
    if isinstance(content, str):
        return dump(cut_middle(content, limit))
    return dump([_clip_block(block, limit, "") for block in content])


def _is_short(text: str, limit: int) -> bool:
    return len(text) <= limit and (text.isascii() or len(text.encode()) <= limit)


def _clip_block(block: Block, limit: int, note: str) -> Block:
    kind = block["type"]
    if kind == "text":
        return {**block, "text": cut_middle(block["text"], limit, note)}
    if kind == "image":
        return {"type": "text", "text": IMAGE_LEFT_OUT}
    if kind == "tool_use":
        return {**block, "input": _clip_input(block["input"], limit)}
    if kind == "tool_result":
        return {**block, "content": json.loads(clip_result(dump(block["content"]), limit))}
    return block


def _clip_input(arguments: Block, limit: int) -> Block:
    shorter = _shorten(arguments, limit)
    text = dump(shorter)
    if len(text.encode()) <= limit * INPUT_SHARE:
        return shorter  # type: ignore[no-any-return]
    return {"left_out": cut_middle(text, limit)}


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_middle(value, limit)
    if isinstance(value, dict):
        return {key: _shorten(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item, limit) for item in value]
    return value
