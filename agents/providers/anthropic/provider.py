"""Models of Anthropic's Messages API, and of any server that implements it.

The SDK sends the request (authentication, API version, proxies, connection pool). The body is
passed as bytes, and `anthropic_stream` reads the stream.

Structured outputs of the Messages API: the server enforces the schema of answers.

The server supports a part of JSON Schema. Schemas that it would refuse, or interpret more strictly,
are only in the prompt. The engine checks the answer in both cases.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import cast
from urllib.parse import quote

import anthropic
import httpx2
from anthropic import AsyncAnthropic

from agents.providers.addresses import OFFICIAL, is_official
from agents.providers.anthropic.conversation import AnthropicConversation, CacheBreakpoint
from agents.providers.anthropic.stream import ReplyBuilder, status_error
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


class AnthropicProvider:
    """The Messages API at one base URL with one key.

    `stall_timeout` is the longest silence between two bytes in seconds; the API sends pings. With
    `cache_breakpoint` None, it is `top_level` at api.anthropic.com and `block` elsewhere.

    Raises `ProviderError` (missing_key) without a key for api.anthropic.com.
    """

    name = "anthropic"
    is_scripted = False

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        stall_timeout: float = 120.0,
        cache_breakpoint: CacheBreakpoint | None = None,
    ) -> None:
        self.base_url = base_url or OFFICIAL["anthropic"]
        official = is_official("anthropic", self.base_url)
        if official and not api_key:
            raise ProviderError(
                "no API key for api.anthropic.com: set ANTHROPIC_API_KEY, or use "
                "--provider scripted for the offline demo",
                code="missing_key",
            )
        self._api_key = api_key or NO_KEY
        self._stall_timeout = stall_timeout
        self._cache_breakpoint = cache_breakpoint or ("top_level" if official else "block")
        # One client per event loop: its pooled connections belong to the loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, AsyncAnthropic] = {}
        self._limits: dict[str, ModelLimits] = {}
        self._takes_format: dict[str, bool] = {}
        self._takes_images: dict[str, bool] = {}

    def conversation(self, head: PromptHead) -> AnthropicConversation:
        """See `Provider.conversation`."""
        return AnthropicConversation(head, self._cache_breakpoint)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        if not isinstance(conversation, AnthropicConversation):
            raise TypeError(f"wanted a conversation of this provider, got {type(conversation)}")
        response = None
        try:
            response = await self._post(conversation)
            decoder, builder = EventDecoder(), ReplyBuilder()
            chunks = response.aiter_bytes()
            async for chunk in chunks:
                for event in decoder.decode(chunk):
                    part = builder.add(event)
                    if part is not None:
                        yield part
                if builder.reply is not None:
                    break
            if builder.reply is None:
                raise malformed(no_end(response, "message_stop"))
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
        """See `Provider.limits`. Asks the server once per model."""
        if model not in self._limits:
            known = known_limits(model)
            try:
                info = await self._model_info(model)
            except anthropic.NotFoundError:
                self._limits[model] = known
            except (anthropic.APIError, ValueError, RecursionError):  # asked again the next time
                return known
            else:
                told = info if isinstance(info, dict) else {}
                self._limits[model] = ModelLimits(
                    told.get("max_input_tokens") or known.context_window,
                    told.get("max_tokens") or known.max_output,
                )
        return self._limits[model]

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`. Asks the server once per model."""
        wanted = output_format(schema)
        if not wanted:
            return ""
        if model not in self._takes_format:
            try:
                info = await self._model_info(model)
            except anthropic.NotFoundError:
                info = None
            except (anthropic.APIError, ValueError, RecursionError):  # asked again the next time
                return ""
            self._takes_format[model] = supports_output_format(info)
        return wanted if self._takes_format[model] else ""

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`. Asks the server once per model that the data file lacks."""
        if is_known(model):
            return True
        if model not in self._takes_images:
            try:
                info = await self._model_info(model)
            except anthropic.NotFoundError:
                info = None
            except (anthropic.APIError, ValueError, RecursionError):  # asked again the next time
                return False
            self._takes_images[model] = supports(info, "image_input")
        return self._takes_images[model]

    async def _model_info(self, model: str) -> object:
        return await self._client().get(
            f"/v1/models/{quote(model, safe='')}",
            cast_to=object,
            options={"max_retries": 0, "timeout": CONNECT_TIMEOUT},
        )

    async def close(self) -> None:
        """See `Provider.close`."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _client(self) -> AsyncAnthropic:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for closed in [known for known in self._clients if known.is_closed()]:
                del self._clients[closed]
            # The SDK's own HTTP client, when it is collected after its loop has closed, would close
            # its connections on this loop, and fail. Redirects are errors: the key and the prompt
            # must not go to another server.
            timeout = anthropic.Timeout(self._stall_timeout, connect=CONNECT_TIMEOUT)
            client = self._clients[loop] = anthropic.AsyncAnthropic(
                api_key=self._api_key,
                base_url=self.base_url,
                timeout=timeout,
                max_retries=0,
                http_client=anthropic.DefaultAsyncHttpxClient(
                    verify=tls_context(),
                    timeout=timeout,
                    follow_redirects=False,
                    event_hooks={"response": [bounded]},
                ),
            )
        return client

    async def _post(self, conversation: AnthropicConversation) -> httpx2.Response:
        """Send the request; return after the status line, if it is 200."""
        is_stream = True  # a variable: the overloads lack raw responses with streams
        try:
            response = await self._client().post(
                "/v1/messages",
                content=conversation.body(),
                cast_to=httpx2.Response,
                stream=is_stream,
                stream_cls=anthropic.AsyncStream[object],
                options={"max_retries": 0, "headers": conversation.headers},
            )
        except anthropic.APIStatusError as error:
            message = error.api_message or error.message
            raise status_error(error.status_code, message, error.response.headers) from None
        except anthropic.APIConnectionError as error:
            cause = error.__cause__ or error
            raise transport_error(cause, self.base_url, self._stall_timeout) from error
        return cast("httpx2.Response", response)


MAX_OPTIONAL = 24
"""Limit of optional properties in the whole schema."""
MAX_UNIONS = 16
_SHAPES = ("type", "anyOf", "oneOf", "enum", "const")


def output_format(schema: Block) -> str:
    """Return `output_config.format` as JSON text; empty if the server does not support `schema`."""
    if schema.get("type") != "object" or not all(map(_is_taken, _parts(schema))):
        return ""
    optional = sum(
        len(set(part["properties"]) - set(part.get("required", ())))
        for part in _parts(schema)
        if "properties" in part
    )
    unions = sum("anyOf" in part or "oneOf" in part for part in _parts(schema))
    if optional > MAX_OPTIONAL or unions > MAX_UNIONS:
        return ""
    wanted = {"type": "json_schema", "schema": anthropic.transform_schema(schema)}
    return json.dumps(wanted, ensure_ascii=False, separators=(",", ":"))


def supports_output_format(model_info: object) -> bool:
    """Return whether the server enforces a schema, by `GET /v1/models/{id}`."""
    return supports(model_info, "structured_outputs")


def supports(model_info: object, capability: str) -> bool:
    """Return whether `GET /v1/models/{id}` reports the capability."""
    told: object = model_info
    for name in ("capabilities", capability, "supported"):
        told = told.get(name) if isinstance(told, Mapping) else None
    return told is True


def _parts(schema: Block) -> Iterator[Block]:
    """Yield the schema and all schemas inside it."""
    yield schema
    within = [*schema.get("properties", {}).values()]
    within += [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if isinstance(schema.get("items"), dict):
        within.append(schema["items"])
    for part in within:
        yield from _parts(part)


def _is_taken(part: Block) -> bool:
    """Return whether the server interprets the part in the same way, or less strictly."""
    shapes = [word for word in _SHAPES if word in part and not (word == "type" and "enum" in part)]
    if len(shapes) != 1 or "allOf" in part or "prefixItems" in part:
        return False
    if any(isinstance(value, list | dict) for value in [*part.get("enum", ()), part.get("const")]):
        return False
    if part.get("type") == "object":
        # The server allows no additional properties: an object without declared ones would be
        # empty.
        return bool(part.get("properties")) and part.get("additionalProperties") in (None, False)
    if part.get("type") == "array":
        return isinstance(part.get("items"), dict)
    return isinstance(part.get("type", ""), str)
