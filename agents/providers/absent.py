"""In place of a provider that cannot be made: the error comes when the model is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    ModelLimits,
    PromptHead,
    ProviderError,
    Role,
)
from agents.providers.prices import is_known, known_limits


class AbsentConversation:
    """Counts what it is given, and keeps none of it."""

    def __init__(self, head: PromptHead) -> None:
        self.size = len(head.system.encode()) + len(repr(head.tools).encode())

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`."""
        self.size += len(blocks_json.encode())


class AbsentProvider:
    """A provider whose every call fails with `error`."""

    is_scripted = False

    def __init__(self, name: str, error: ProviderError) -> None:
        self.name = name
        self._error = error

    def conversation(self, head: PromptHead) -> AbsentConversation:
        """See `Provider.conversation`."""
        return AbsentConversation(head)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        told = self._error
        raise ProviderError(told.message, code=told.code)
        yield  # what makes it a generator

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`."""
        return ""

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`."""
        return is_known(model)

    async def limits(self, model: str) -> ModelLimits:
        """See `Provider.limits`."""
        return known_limits(model)

    async def close(self) -> None:
        """See `Provider.close`."""
