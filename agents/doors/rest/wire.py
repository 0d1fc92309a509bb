"""Parsing and rendering of JSON. Bodies are strict UTF-8 JSON that every database can store."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from agents.events.append import dump

MAX_DEPTH = 64
"""Maximum levels of lists and objects in a body. A thousand would exhaust the stack."""


class StrictJSONParser(BaseParser):
    """A parser for JSON in UTF-8; ignores the charset of the header (RFC 8259).

    Rejects values that would fail later, in the database or in a response: NaN and infinity, NUL,
    lone surrogates and deep nesting. A body over `DATA_UPLOAD_MAX_MEMORY_SIZE` raises
    `RequestDataTooBig`.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        # `body` enforces the size limit; the stream does not.
        body: bytes = (parser_context or {})["request"].body
        try:
            data = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8: {error.reason} at {error.start}.") from None
        except json.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error}.") from None
        except ValueError as error:  # an integer with thousands of digits
            raise ParseError(f"The body holds a number that is too long: {error}.") from None
        except RecursionError:
            raise ParseError(f"The body nests deeper than {MAX_DEPTH} levels.") from None
        check_json(data)
        return data


def check_json(data: object) -> None:
    """Raise `ParseError` for a value that some databases or clients cannot process."""
    level, depth = [data], 0
    while level:
        if depth > MAX_DEPTH:
            raise ParseError(f"The body nests deeper than {MAX_DEPTH} levels.")
        below: list[object] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value)
            elif isinstance(value, float):
                if not math.isfinite(value):
                    raise ParseError("The body holds a number that is too large for a float.")
            elif isinstance(value, dict):
                below += value.keys()
                below += value.values()
            elif isinstance(value, list):
                below += value
        level, depth = below, depth + 1


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise ParseError("The body holds a NUL character: leave it out.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ParseError("The body holds a lone surrogate: send whole characters.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(f"The body holds {name}, which is not JSON.")


class CanonicalJSONRenderer(JSONRenderer):
    """The renderer for JSON in Vel's canonical form. Lone surrogates are escaped."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else dump(data).encode()


class OneRepresentation(DefaultContentNegotiation):
    """JSON for any `Accept` header: there is no other representation."""

    def select_renderer(
        self,
        request: Request,
        renderers: list[BaseRenderer],  # type: ignore[override]  # the framework passes a list
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], str(renderers[0].media_type)
