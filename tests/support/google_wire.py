"""The common wire format of Google's APIs: errors, base64url, parameters."""

from __future__ import annotations

import base64
import binascii
from typing import Any


class Refused(Exception):
    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status = status
        self.body = body

    @classmethod
    def of(cls, status: int, message: str, reason: str) -> Refused:
        inner = [{"message": message, "domain": "global", "reason": reason}]
        return cls(status, {"error": {"code": status, "message": message, "errors": inner}})


def unpadded(text: str) -> bytes:
    """Decode base64url without padding, as in a JWT. Raises `ValueError` if it is invalid."""
    if "=" in text:
        raise ValueError
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def raw_bytes(text: Any) -> bytes:
    """Decode the base64url of a message. Standard base64 is refused, as in Gmail."""
    try:
        if not isinstance(text, str) or not text or "+" in text or "/" in text:
            raise ValueError
        return base64.b64decode(text, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise Refused.of(400, "Invalid value for ByteString", "invalid") from None


def allow(scopes: set[str], *enough: str) -> None:
    if not scopes & set(enough):
        body = Refused.of(
            403, "Request had insufficient authentication scopes.", "insufficientPermissions"
        ).body
        body["error"]["status"] = "PERMISSION_DENIED"
        body["error"]["details"] = [{"reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]
        raise Refused(403, body)


def known(query: dict[str, list[str]], *names: str) -> dict[str, str]:
    unknown = set(query) - set(names)
    if unknown:
        raise Refused.of(400, f"Invalid query parameter {sorted(unknown)}", "invalidParameter")
    return {name: values[0] for name, values in query.items()}


def fields(body: Any, *names: str) -> dict[str, Any]:
    if not isinstance(body, dict) or set(body) - set(names):
        raise Refused.of(400, "Invalid JSON payload received. Unknown name", "badRequest")
    return body
