"""The tools of a server, read into definitions that a person can accept.

The digest is of the whole definition by the server, word for word, including hints and titles,
which models do not receive.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.input_schema import SchemaUnusable, usable_schema
from agents.features.mcp_client.protocol.limits import (
    MAX_DESCRIPTION,
    MAX_LIST_BYTES,
    MAX_SCHEMA_BYTES,
    MAX_TOOLS,
)

LONGEST_NAME = 128
LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as its server describes it. `annotations` are hints of an untrusted party."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]
    digest: str

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": self.input_schema,
            "annotations": self.annotations,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools. `refused` has the others, as (name, reason)."""

    tools: tuple[Definition, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the whole list, in any order."""
        tools = sorted([[tool.name, tool.digest] for tool in self.tools])
        return _sha256([tools, sorted(map(list, self.refused))])


def digests(listing: Listing) -> dict[str, str]:
    return {tool.name: tool.digest for tool in listing.tools}


def read_listing(server: str, listed: Iterable[Mapping[str, Any]]) -> Listing:
    """Read the tools of a server, which have the names of the protocol.

    Raises `McpError` if they exceed the limits for a server.
    """
    tools: dict[str, Definition] = {}
    refused: list[tuple[str, str]] = []
    offered: set[str] = set()
    size = 0
    for count, raw in enumerate(listed, 1):
        if count > MAX_TOOLS:
            raise McpError(
                f"The server offers more than {MAX_TOOLS} tools, so no tools were accepted.",
                "too_many_tools",
            )
        try:
            tool = _read(raw)
        except ValueError as problem:
            refused.append((_short_name(raw), str(problem)))
            continue
        name = offered_name(server, tool.name)
        if name in offered:
            refused.append((tool.name, "another tool has the same name"))
            tools = {key: kept for key, kept in tools.items() if key != tool.name}
            continue
        offered.add(name)
        size += len(tool.description.encode()) + len(_canonical(tool.input_schema))
        tools[tool.name] = tool
    if size > MAX_LIST_BYTES:
        raise McpError(
            f"The server's descriptions and schemas are over {MAX_LIST_BYTES:,} bytes, so no tools "
            "were accepted.",
            "too_large",
        )
    return Listing(tuple(tools.values()), tuple(refused))


def _read(raw: Mapping[str, Any]) -> Definition:
    """Read a tool. Raises `ValueError` with the reason why it is refused."""
    name, title = raw.get("name"), raw.get("title") or ""
    description = raw.get("description") or ""
    schema, annotations = raw.get("inputSchema"), raw.get("annotations") or {}
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME:
        raise ValueError(f"its name is not of 1 to {LONGEST_NAME} characters")
    if not all(0x20 < ord(char) < 0x7F for char in name):
        raise ValueError("its name is not of printable ASCII characters")
    if not isinstance(description, str) or not isinstance(title, str):
        raise ValueError("its description is not text")
    if len(description) > MAX_DESCRIPTION or len(title) > LONGEST_TITLE:
        raise ValueError(f"its description has over {MAX_DESCRIPTION:,} characters")
    if not isinstance(annotations, dict) or not isinstance(schema, dict):
        raise ValueError("its input is not a JSON Schema of an object")
    try:
        whole = _canonical([description, title, schema, annotations])
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON that can be stored") from None
    if "\\u0000" in whole or _has_surrogate(whole):
        raise ValueError("it contains a NUL or half of a character")
    if len(_canonical(schema)) > MAX_SCHEMA_BYTES or len(_canonical(annotations)) > 2_000:
        raise ValueError(f"its schema has over {MAX_SCHEMA_BYTES:,} bytes")
    try:
        usable_schema(schema)
    except SchemaUnusable as problem:
        raise ValueError(str(problem)) from None
    digest = _sha256([name, title, description, schema, annotations])
    return Definition(name, title, description, schema, annotations, digest)


def _short_name(raw: Mapping[str, Any]) -> str:
    name = raw.get("name")
    text = name if isinstance(name, str) else "?"
    return text.encode("ascii", "replace").decode().replace("\x00", "?")[:LONGEST_NAME] or "?"


def _canonical(value: Any) -> str:
    """Return ASCII text in a fixed order. Raises `ValueError` if it is not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _has_surrogate(canonical: str) -> bool:
    """Return whether it contains a lone surrogate, which JSON allows and databases refuse."""
    try:
        json.dumps(json.loads(canonical), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _sha256(value: Any) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()


PREFIX = "mcp__"
LONGEST = 64
"""The limit of model servers."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def offered_name(server: str, tool: str) -> str:
    """Return the constant name of a tool. An invalid name is changed, and ends in a digest."""
    whole = f"{PREFIX}{server}__{tool}"
    if _PLAIN.fullmatch(tool) and len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_OTHER.sub('_', whole)[: LONGEST - 9]}_{digest}"
