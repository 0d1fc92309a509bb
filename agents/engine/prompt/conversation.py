"""A conversation in the form for a provider, from a thread's history.

Rows refer to pictures by their ids. The bytes inserted here are always the same, so the prompt's
prefix does not change (invariant 5).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.engine.prompt.clipping import IMAGE_LEFT_OUT
from agents.engine.storage.database import Database
from agents.events.append import dump
from agents.models import MessageImage, Run
from agents.providers.base import Block, Conversation, PromptHead, Provider, Role
from agents.settings import ModelSettings

STORED = "stored"
_MARK = f'"source":{{"type":"{STORED}"'


def stored_image(image_id: str, width: int, height: int) -> Block:
    """Return the block that refers to a picture in rows."""
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
    """Return `history` under `head`, with the pictures of threads that `run`'s owner owns."""
    ids = [image_id for role, blocks in history for image_id in _ids_in(role, blocks)]
    images: Mapping[str, Block] = {}
    if ids and await takes_images(provider, head.model):
        images = await database.run(_read_images, run.owner_id, ids)
    conversation = provider.conversation(head)
    for role, blocks in history:
        conversation.append(role, _with_bytes(role, blocks, images))
    return conversation


def _is_reference(role: Role, block: Any) -> bool:
    return role == "user" and block["type"] == "image" and block["source"]["type"] == STORED


def _ids_in(role: Role, blocks: str) -> list[str]:
    if _MARK not in blocks:
        return []
    return [block["source"]["id"] for block in json.loads(blocks) if _is_reference(role, block)]


def _with_bytes(role: Role, blocks: str, images: Mapping[str, Block]) -> str:
    """Insert the pictures' bytes, or a note for a missing or unsupported picture."""
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
