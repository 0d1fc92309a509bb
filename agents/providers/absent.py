"""A replacement for a provider that cannot be created: the error comes with the model call.

So a run finishes its open calls first, and middleware around the model call can handle the error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    ModelLimits,
    PromptHead,
    Provider,
    ProviderError,
    Role,
)
from agents.providers.prices import is_known, known_limits


class AbsentConversation:
    """A conversation that stores only the size of its messages."""

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
        raise ProviderError(self._error.message, code=self._error.code)
        yield  # makes this function a generator

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


def provider_or_absent(named: Callable[[str], Provider], name: str) -> Provider:
    """Return `named(name)`, or an `AbsentProvider` with the `ProviderError` that it raises."""
    try:
        return named(name)
    except ProviderError as error:
        return AbsentProvider(name, error)
