"""A provider whose key can change while runs use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    ModelLimits,
    PromptHead,
    Provider,
    ProviderError,
)
from agents.providers.registry import ProviderSettings, forget_provider, get_provider


@dataclass(slots=True, eq=False)
class _Client:
    """A provider with one key. After its replacement, it is closed with its last call."""

    provider: Provider
    calls: int = 0
    is_replaced: bool = False


class PresentProvider:
    """The provider with the present key: each call checks whether the key has changed.

    A replaced or removed key is not used for another call. Calls in progress end with their key.
    For one event loop. `settings` returns the present settings.

    Raises `ProviderError` like `get_provider`, from the constructor and from each call.
    """

    is_scripted = False

    def __init__(self, name: str, settings: Callable[[], ProviderSettings]) -> None:
        self.name = name
        self._settings = settings
        self._client = _Client(get_provider(name, settings()))
        self._closing: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raise `ProviderError` if there is no usable key now."""
        self._present()

    def conversation(self, head: PromptHead) -> Conversation:
        """See `Provider.conversation`. It does not depend on the key."""
        return self._client.provider.conversation(head)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        async with self._call() as provider:
            events = provider.stream(conversation)
            try:
                async for event in events:
                    yield event
            finally:
                await events.aclose()

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`."""
        async with self._call() as provider:
            return await provider.output_format(model, schema)

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`."""
        async with self._call() as provider:
            return await provider.takes_images(model)

    async def limits(self, model: str) -> ModelLimits:
        """See `Provider.limits`."""
        async with self._call() as provider:
            return await provider.limits(model)

    async def close(self) -> None:
        """See `Provider.close`."""
        await asyncio.gather(*self._closing)
        await self._client.provider.close()

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[Provider]:
        client = self._present()
        client.calls += 1
        try:
            yield client.provider
        finally:
            client.calls -= 1
            if client.is_replaced and not client.calls:
                await client.provider.close()

    def _present(self) -> _Client:
        try:
            provider = get_provider(self.name, self._settings())
        except ProviderError:
            self._replace(self._client)
            raise
        if provider is not self._client.provider:
            earlier, self._client = self._client, _Client(provider)
            self._replace(earlier)
        return self._client

    def _replace(self, client: _Client) -> None:
        """Take `client` out of use, and close its provider as soon as no call uses it.

        Then the process no longer has its key. A client that was replaced before is ignored.
        """
        if client.is_replaced:
            return
        client.is_replaced = True
        forget_provider(client.provider)
        if not client.calls:
            task = asyncio.get_running_loop().create_task(client.provider.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
