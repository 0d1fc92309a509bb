"""Validate webhook URLs, and send one signed POST by the Standard Webhooks specification.

The specification is at standardwebhooks.com. This module implements HTTP itself, since the
sandboxes' `dial` makes the connection: it resolves a name once, checks each address and connects to
one of them. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
import secrets
import ssl
import time

from agents.features.notifications.settings import NotificationSettings
from agents.services.errors import InvalidRequest
from agents.services.outside_address import (
    OutsideAddress,
    Wording,
    parse_outside_url,
    tls_context,
)
from sandbox.linux.egress.dialling import Unreachable, dial

SECRET_PREFIX = "whsec_"  # noqa: S105  # the prefix of a secret
SECONDS = 10.0
"""Limit for all of it: look-up, connection, TLS, request and the start of the answer."""

_WORDS = Wording("the webhook", "Webhooks go", "a receiver", "VEL_WEBHOOK_PRIVATE_HOSTS")
_LONGEST_LINE = 1024
_MOST_LINES = 100
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: .*)?\r\n", re.DOTALL)


class DeliveryFailed(Exception):
    """A message that probably did not arrive. The text has the reason, for the operator."""


def parse_webhook_url(url: str) -> OutsideAddress:
    """Parse a URL. Raises `InvalidRequest` if it is ambiguous or is not allowed.

    The name is not resolved here: its addresses are checked at each delivery.
    """
    return parse_outside_url(url, NotificationSettings.now().WEBHOOK_PRIVATE_HOSTS, _WORDS)


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`. Raises `InvalidRequest` for an invalid secret.

    `timestamp` is in Unix seconds.
    """
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not key or not secret.startswith(SECRET_PREFIX):
        raise InvalidRequest("The webhook has no valid secret. Create a new secret.")
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def post(address: OutsideAddress, secret: str, message_id: str, body: bytes) -> int:
    """Deliver `body` (JSON) and return the status, a 2xx. Blocks for `SECONDS` at most.

    Raises `InvalidRequest` for an invalid secret, and `DeliveryFailed`. Its text contains the
    receiver's status only: the reader of the error may not have access to the receiver's network.
    """
    now = int(time.time())
    head = (
        f"POST {address.path} HTTP/1.1\r\n"
        f"Host: {address.authority}\r\n"
        "User-Agent: Vel\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n"
        f"webhook-id: {message_id}\r\n"
        f"webhook-timestamp: {now}\r\n"
        f"webhook-signature: {signature(secret, message_id, now, body)}\r\n\r\n"
    )
    try:
        status = asyncio.run(_exchange(address, head.encode("ascii") + body))
    except Unreachable as problem:
        raise DeliveryFailed(f"not sent: {problem.reason}") from None
    except TimeoutError:
        raise DeliveryFailed(f"no answer within {SECONDS:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise DeliveryFailed(f"its certificate is refused: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise DeliveryFailed(f"TLS failed: {error.reason or 'broken off'}") from None
    except OSError as error:
        raise DeliveryFailed(f"the connection broke ({error.strerror or 'closed'})") from None
    if 200 <= status < 300:
        return status
    redirect = "; redirects are not followed" if 300 <= status < 400 else ""
    raise DeliveryFailed(f"it answered {status}{redirect}")


async def _exchange(address: OutsideAddress, request: bytes) -> int:
    async with asyncio.timeout(SECONDS):
        connected = await dial(address.endpoint, address.world, SECONDS)
        try:
            reader, writer = await asyncio.open_connection(
                sock=connected,
                limit=_LONGEST_LINE,
                ssl=tls_context() if address.tls else None,
                server_hostname=address.endpoint.host if address.tls else None,
            )
        except BaseException:
            connected.close()
            raise
        try:
            writer.write(request)
            await writer.drain()
            return await _status(reader)
        finally:
            writer.transport.abort()  # the rest of the answer is not read


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of the final answer. The rest is not read."""
    lines = 0
    while lines < _MOST_LINES:
        match = _STATUS_LINE.fullmatch(await _line(reader))
        if match is None:
            raise DeliveryFailed("it does not speak HTTP/1.1")
        status = int(match[1])
        if status >= 200:
            return status
        while lines < _MOST_LINES and await _line(reader) != b"\r\n":  # 100 Continue and similar
            lines += 1
        lines += 1
    raise DeliveryFailed("it sent no HTTP response")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except asyncio.IncompleteReadError:
        raise DeliveryFailed("it closed the connection without an answer") from None
    except asyncio.LimitOverrunError:
        raise DeliveryFailed("its answer is malformed") from None
