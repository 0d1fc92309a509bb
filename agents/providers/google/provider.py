"""Gemini models of Google's Gemini API, and of servers that implement it.

The SDK uses our HTTP client, and requests the models' limits. Requests with contents use that
client directly, as bytes: the SDK would build objects of the whole conversation in every turn, and
it waits and retries automatically. Vertex AI is not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import quote, urlsplit

import httpx2
from google import genai
from google.genai import Client, types

from agents.kernel.lazy_modules import lazy_modules
from agents.providers.addresses import OFFICIAL, is_official
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
from agents.providers.google.conversation import GoogleConversation
from agents.providers.google.errors import status_error
from agents.providers.google.stream import ReplyBuilder
from agents.providers.prices import is_known, known_limits
from agents.providers.transport import (
    CONNECT_TIMEOUT,
    DRAIN_TIMEOUT,
    NO_KEY,
    bounded,
    no_end,
    tls_context,
    transport_error,
)

with lazy_modules:
    from google.genai import errors  # takes 0.5 s and 50 MB


API_VERSION = "v1beta"
MAX_ERROR_BYTES = 64_000


class GoogleProvider:
    """The Gemini API at one base URL with one key.

    `stall_timeout` is the longest silence between two bytes in seconds; the API sends no pings.

    Raises `ProviderError` (missing_key) without a key for Google's own API.
    """

    name = "google"
    is_scripted = False

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        stall_timeout: float = 120.0,
    ) -> None:
        self.base_url = (base_url or OFFICIAL["google"]).rstrip("/")
        if is_official("google", self.base_url) and not api_key:
            raise ProviderError(
                "no API key for generativelanguage.googleapis.com: set GOOGLE_API_KEY or "
                "GEMINI_API_KEY",
                code="missing_key",
            )
        self._api_key = api_key or NO_KEY
        self._stall_timeout = stall_timeout
        self._origin = f"google:{urlsplit(self.base_url).netloc}"
        # One client per event loop: its pooled connections belong to the loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._sdks: dict[asyncio.AbstractEventLoop, Client] = {}
        self._limits: dict[str, ModelLimits] = {}

    def conversation(self, head: PromptHead) -> GoogleConversation:
        """See `Provider.conversation`."""
        return GoogleConversation(head, self._origin)

    async def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """See `Provider.stream`."""
        if not isinstance(conversation, GoogleConversation):
            raise TypeError(f"wanted a conversation of this provider, got {type(conversation)}")
        response: httpx2.Response | None = None
        try:
            response = await self._post(conversation)
            decoder, builder = EventDecoder(), ReplyBuilder(conversation.model, self._origin)
            chunks = response.aiter_bytes()
            async for chunk in chunks:
                for event in decoder.decode(chunk):
                    for part in builder.add(event):
                        yield part
                if builder.has_ended:
                    break
            if not builder.has_ended:
                raise malformed(no_end(response, "a finish reason"))
            try:  # for the last figures, and so that the connection serves the next request
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    async for chunk in chunks:
                        for event in decoder.decode(chunk):
                            for part in builder.add(event):
                                yield part
            except (TimeoutError, httpx2.HTTPError):
                pass  # the reply is complete; the connection is dropped
            reply = builder.finish()
        except httpx2.HTTPError as error:
            raise transport_error(error, self.base_url, self._stall_timeout) from error
        except ProviderError as error:
            hide_key(error, self._api_key)
            raise
        finally:
            if response is not None:
                await response.aclose()
        yield reply

    async def limits(self, model: str) -> ModelLimits:
        """See `Provider.limits`. Asks the server once per model."""
        if model not in self._limits:
            known = known_limits(model)
            try:
                info = await self._sdk().aio.models.get(model=model)
            except errors.APIError as error:
                if error.code != 404:  # asked again the next time
                    return known
                self._limits[model] = known
            except Exception:  # noqa: BLE001  # the model call will report it
                return known
            else:
                self._limits[model] = ModelLimits(
                    info.input_token_limit or known.context_window,
                    info.output_token_limit or known.max_output,
                )
        return self._limits[model]

    async def output_format(self, model: str, schema: Block) -> str:
        """See `Provider.output_format`.

        Most of its models do not support it together with tools.
        """
        return ""

    async def takes_images(self, model: str) -> bool:
        """See `Provider.takes_images`. The API does not report it."""
        return is_known(model)

    async def close(self) -> None:
        """See `Provider.close`."""
        loop = asyncio.get_running_loop()
        self._sdks.pop(loop, None)
        client = self._clients.pop(loop, None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for closed in [known for known in self._clients if known.is_closed()]:
                del self._clients[closed]
                self._sdks.pop(closed, None)
            timeout = httpx2.Timeout(self._stall_timeout, connect=CONNECT_TIMEOUT)
            # Redirects are not followed: the key must only go to the operator's address.
            client = self._clients[loop] = httpx2.AsyncClient(
                verify=tls_context(),
                timeout=timeout,
                follow_redirects=False,
                event_hooks={"response": [bounded]},
            )
        return client

    def _sdk(self) -> Client:
        loop = asyncio.get_running_loop()
        if loop not in self._sdks:
            # All options are given, since the SDK reads others, also the key, from the environment.
            self._sdks[loop] = genai.Client(
                vertexai=False,
                api_key=self._api_key,
                http_options=types.HttpOptions(
                    base_url=self.base_url,
                    api_version=API_VERSION,
                    httpx_async_client=self._client(),
                    timeout=int(CONNECT_TIMEOUT * 1000),
                ),
            )
        return self._sdks[loop]

    async def _post(self, conversation: GoogleConversation) -> httpx2.Response:
        """Send the request; return after the status line, if it is 200."""
        client = self._client()
        name = quote(conversation.model.removeprefix("models/"), safe="")
        request = client.build_request(
            "POST",
            f"{self.base_url}/{API_VERSION}/models/{name}:streamGenerateContent?alt=sse",
            content=conversation.body(),
            headers={"content-type": "application/json", "x-goog-api-key": self._api_key},
        )
        response = await client.send(request, stream=True)
        if response.status_code == 200:
            return response
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ERROR_BYTES:
                    break
            raise status_error(response.status_code, bytes(body), response.headers)
        finally:
            await response.aclose()
