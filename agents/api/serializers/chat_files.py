"""Files in a chat message, as `data:` URLs."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from typing import Any

from django.core.files.base import ContentFile

from agents.services.errors import InvalidRequest

MAX_NAME = 200


def file_in(part: dict[str, Any]) -> ContentFile[bytes]:
    """Return the file of a part `{type, mediaType, filename?, url}`.

    Vel never fetches other URLs. Raises `InvalidRequest`. The upload service detects the type of
    the content.
    """
    url, media_type, name = part.get("url"), part.get("mediaType"), part.get("filename")
    if not isinstance(url, str) or not isinstance(media_type, str):
        raise InvalidRequest("A file has an `url` and a `mediaType`.")
    head, comma, text = url.partition(",")
    if not head.lower().startswith("data:") or not head.lower().endswith(";base64") or not comma:
        raise InvalidRequest(
            "A file is a data: address in base64. Others are not fetched: upload the file to the "
            "thread (POST /threads/{id}/uploads).",
            code="file_elsewhere",
        )
    if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME):
        raise InvalidRequest(f"A file's name is text of at most {MAX_NAME} characters.")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("A file's data: address is not base64.") from None
    return ContentFile(data, name or f"file{mimetypes.guess_extension(media_type) or ''}")
