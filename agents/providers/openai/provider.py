"""Models of OpenAI's APIs, and of any server that implements one of them.

There are two protocols: the Responses API, which api.openai.com requires for models that reason,
and Chat Completions, for llama.cpp, vLLM, Ollama, LiteLLM and most others. The SDK sends the
request (authentication, proxies, connection pool). The body is passed as bytes, and the stream is
read here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import httpx2
import openai
from openai import AsyncOpenAI

from agents.providers.addresses import OFFICIAL, host_of, is_official
from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    ModelLimits,
    PromptHead,
    ProviderError,
)
from agents.providers.errors import hide_key, malformed
from agents.providers.event_stream import EventDecoder
from agents.providers.openai import models as openai_models
from agents.providers.openai.chat import END, ChatConversation, ChatReplyBuilder
from agents.providers.openai.conversation import OpenAIConversation, OpenAIWire
from agents.providers.openai.errors import status_error
from agents.providers.openai.responses import ResponsesConversation, output_format
from agents.providers.openai.responses_stream import ResponsesReplyBuilder
from agents.providers.prices import is_known, known_limits
from agents.providers.transport import (
    CONNECT_TIMEOUT,
    NO_KEY,
    bounded,
    drain,
    no_end,
    tls_context,
    transport_error,
)


class OpenAIProvider:
    """One protocol at one base URL with one key.

    `wire` None means Responses at api.openai.com, and Chat Completions elsewhere. `stall_timeout`
    is the longest silence between two bytes in seconds.

    Raises `ProviderError` (missing_key) without a key for api.openai.com.
    """

    is_scripted = False

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        name: str = "openai",
        wire: OpenAIWire | None = None,
        stall_timeout: float = 120.0,
    ) -> None:
        self.name = name
        self.base_url = base_url or OFFICIAL["openai"]
        self._official = is_official("openai", self.base_url)
        if self._official and not api_key:
            raise ProviderError(
                "no API key for api.openai.com: set OPENAI_API_KEY, or use "
                "--provider scripted for the offline demo",
                code="missing_key",
            )
        self.wire: OpenAIWire = wire or ("responses" if self._official else "chat")
        self._origin = f"openai-{self.wire} {host_of(self.base_url)}"
        self._api_key = api_key or NO_KEY
        self._stall_timeout = stall_timeout
        # One client per event loop: its pooled connections belong to the loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._told: dict[str, list[Mapping[str, Any]]] = {}

    def conversation(self, head: PromptHead) -> OpenAIConversation:
        """See `Provider.conversation`."""
        if self.wire == "responses":
            return ResponsesConversation(head, self._origin)
        return ChatConversation(head, self._origin, official=self._official)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        if not isinstance(conversation, OpenAIConversation):
            raise TypeError(f"wanted a conversation of this provider, got {type(conversation)}")
        made = ResponsesReplyBuilder if self.wire == "responses" else ChatReplyBuilder
        builder = made(self._origin, conversation.call_ids)
        decoder = EventDecoder(END)
        response = None
        try:
            response = await self._post(conversation)
            chunks = response.aiter_bytes()
            async for chunk in chunks:
                for event in decoder.decode(chunk):
                    for part in builder.add(event):
                        yield part
                if decoder.ended or builder.reply is not None:
                    break
            builder.end(marked=decoder.ended)
            if builder.reply is None:
                raise malformed(no_end(response, builder.last_event))
            await drain(chunks)
        except httpx2.HTTPError as error:
            raise transport_error(error, self.base_url, self._stall_timeout) from error
        except ProviderError as error:
            hide_key(error, self._api_key)
            raise
        finally:
            if response is not None:
                await response.aclose()
        yield builder.reply

    async def limits(self, model: str) -> ModelLimits:
        """See `Provider.limits`. Asks other servers than OpenAI's once per model."""
        known = known_limits(model)
        told = openai_models.limits_of(await self._rows(model))
        return ModelLimits(
            told.context_window or known.context_window, told.max_output or known.max_output
        )

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`. Only OpenAI's own models are known to support it."""
        return output_format(schema) if self._official and is_known(model) else ""

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`. Asks other servers than OpenAI's once per model."""
        return is_known(model) or openai_models.takes_images(await self._rows(model))

    async def close(self) -> None:
        """See `Provider.close`."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _rows(self, model: str) -> list[Mapping[str, Any]]:
        if self._official:
            return []
        if model not in self._told:
            try:
                listed = await self._client().get(
                    "/models",
                    cast_to=object,
                    options={"max_retries": 0, "timeout": CONNECT_TIMEOUT},
                )
            except openai.NotFoundError:
                listed = None
            except (openai.APIError, ValueError, RecursionError):  # asked again the next time
                return []
            self._told[model] = openai_models.entries(listed, model)
        return self._told[model]

    def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for closed in [known for known in self._clients if known.is_closed()]:
                del self._clients[closed]
            # The SDK's own HTTP client, when it is collected after its loop has closed, would close
            # its connections on this loop, and fail. Redirects are errors: the prompt must not go
            # to another server.
            timeout = openai.Timeout(self._stall_timeout, connect=CONNECT_TIMEOUT)
            client = self._clients[loop] = openai.AsyncOpenAI(
                api_key=self._api_key,
                base_url=self.base_url,
                timeout=timeout,
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=tls_context(),
                    timeout=timeout,
                    follow_redirects=False,
                    event_hooks={"response": [bounded]},
                ),
            )
        return client

    async def _post(self, conversation: OpenAIConversation) -> httpx2.Response:
        """Send the request; return after the status line, if it is 200."""
        is_stream = True  # a variable: the overloads lack raw responses with streams
        try:
            response = await self._client().post(
                conversation.path,
                content=conversation.body(),
                cast_to=httpx2.Response,
                stream=is_stream,
                stream_cls=openai.AsyncStream[object],
                options={"max_retries": 0, "headers": {"content-type": "application/json"}},
            )
        except openai.APIStatusError as error:
            body = error.body if error.body is not None else error.message
            raise status_error(error.status_code, body, error.response.headers) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise transport_error(cause, self.base_url, self._stall_timeout) from error
        return cast("httpx2.Response", response)
