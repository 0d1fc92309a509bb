"""The messages of one thread as bytes of a Gemini API request.

The start of the prompt stays the same, byte for byte (invariant 5 in
docs/contributing/architecture.md). The head is serialised once, the parts of each message are
derived from its canonical blocks once, and a request is a join of fragments.

A signature belongs to the part that it came with. In canonical blocks it is a redacted_thinking
block before that part's block; at the end of a message it belongs to an empty text.

Convert tool schemas for the Gemini API, which supports a part of JSON Schema.

Unsupported keywords are removed. This only loosens a schema, and the engine checks every input
against the complete one before a tool runs.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agents.providers.base import Block, PromptHead, Role, excess_bytes, is_foreign

MADE = "vel_call_"
"""Prefix of generated ids, for calls that came without one. They are not sent."""
ANY_SIGNATURE = "skip_thought_signature_validator"
"""Google's documented value for calls of another model: newer models refuse a call without one."""
_ROLES = {"user": "user", "assistant": "model"}
_GENERATION = re.compile(r"gemini-(\d+)")
_LEVELS = {"low": "low", "medium": "medium", "high": "high", "max": "high"}
_BUDGETS = {"low": 1_024, "medium": 8_192, "high": 24_576, "max": 24_576}
"""Thinking budgets in tokens, for models before those with levels. The last is the maximum."""
LEAST_BUDGET = 128
"""Smallest budget: the larger models of that generation always think."""


class GoogleConversation:
    """An append-only `Conversation`. `origin` names the API whose thoughts are sent back to it."""

    def __init__(self, head: PromptHead, origin: str) -> None:
        self.model = head.model
        self._origin = origin
        self._wants_signatures = generation(head.model) >= 3
        self._head = _dump(_head(head)).removesuffix(b"]}")
        self._contents = bytearray()
        self._excess = 0
        self._open_role: Role | None = None
        self._names: dict[str, str] = {}

    @property
    def size(self) -> int:
        """See `Conversation.size`."""
        return len(self._head) + len(self._contents) - self._excess

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`."""
        blocks_json.encode()
        blocks = json.loads(blocks_json)
        if not isinstance(blocks, list) or not blocks:
            raise ValueError(f"a message needs a JSON array of blocks; got {blocks_json[:80]!r}")
        if not all(isinstance(block, dict) and "type" in block for block in blocks):
            raise ValueError(f"every block is an object with a type; got {blocks_json[:80]!r}")
        parts = self._said(blocks) if role == "assistant" else self._told(blocks)
        if not parts:
            return
        inner = b",".join(map(_dump, parts))
        if role == self._open_role:
            self._contents += b","
        else:
            self._contents += b"]}," if self._open_role else b""
            self._contents += b'{"role":"%b","parts":[' % _ROLES[role].encode()
            self._open_role = role
        self._contents += inner
        if role == "user":
            self._excess += excess_bytes(blocks_json)

    def body(self) -> bytes:
        """Return the body of the request: always the same bytes."""
        return b"".join((self._head, self._contents, b"]}]}" if self._open_role else b"]}"))

    def _said(self, blocks: list[Block]) -> list[Block]:
        """Return the parts of the model's message, each with its signature."""
        parts: list[Block] = []
        signature = ""
        needs_signature = self._wants_signatures
        for block in blocks:
            if is_foreign(block, self._origin):
                continue
            kind = block["type"]
            if kind == "redacted_thinking":
                if signature:
                    parts.append({"text": "", "thoughtSignature": signature})
                signature = block["data"]
                continue
            part = self._part(block)
            if part is None:
                continue
            if kind == "tool_use":
                if needs_signature and not signature:
                    signature = ANY_SIGNATURE
                needs_signature = False
            if signature:
                part["thoughtSignature"] = signature
                signature = ""
            parts.append(part)
        if signature:
            parts.append({"text": "", "thoughtSignature": signature})
        # If the output limit cut the reply off during the thoughts, there is no message.
        return parts if any("thought" not in part for part in parts) else []

    def _part(self, block: Block) -> Block | None:
        kind = block["type"]
        if kind == "text":
            return {"text": block["text"]} if block["text"] else None
        if kind == "thinking":
            thought = {"text": block["thinking"], "thought": True}
            return thought if block["thinking"] else None
        if kind == "tool_use":
            self._names[block["id"]] = block["name"]
            call = {"name": block["name"], "args": block["input"]}
            return {"functionCall": {**_id(block["id"]), **call}}
        return None

    def _told(self, blocks: list[Block]) -> list[Block]:
        """Return the parts of a user message. The API requires results to be first."""
        results: list[Block] = []
        others: list[Block] = []
        for block in blocks:
            if block["type"] == "tool_result":
                result, pictures = self._result(block)
                results.append(result)
                others += pictures
            elif (part := _user_part(block)) is not None:
                others.append(part)
        return results + others

    def _result(self, block: Block) -> tuple[Block, list[Block]]:
        content = block.get("content", "")
        pictures: list[Block] = []
        if isinstance(content, list):
            pictures = [_picture(each) for each in content if each["type"] == "image"]
            content = "\n".join(each["text"] for each in content if each["type"] == "text")
        call_id = block["tool_use_id"]
        response = {
            **_id(call_id),
            "name": self._names.get(call_id, "unknown"),
            "response": {"error" if block.get("is_error") else "output": content},
        }
        return {"functionResponse": response}, pictures


def generation(model: str) -> int:
    """Return the number in a model's name, as 3 of `gemini-3-pro`; 0 without one."""
    found = _GENERATION.search(model)
    return int(found[1]) if found else 0


def _id(call_id: str) -> Block:
    return {} if call_id.startswith(MADE) else {"id": call_id}


def _user_part(block: Block) -> Block | None:
    if block["type"] == "image":
        return _picture(block)
    return {"text": block["text"]} if block["type"] == "text" and block["text"] else None


def _picture(block: Block) -> Block:
    source = block["source"]
    if source["type"] != "base64":
        raise ValueError(f"a picture needs its bytes; got a source {source['type']!r}")
    return {"inlineData": {"mimeType": source["media_type"], "data": source["data"]}}


def _head(head: PromptHead) -> Block:
    """Return everything before the contents, which are last. The model is in the URL."""
    request: Block = {}
    if head.system:
        request["systemInstruction"] = {"parts": [{"text": head.system}]}
    if head.tools:
        request["tools"] = [{"functionDeclarations": [_declared(tool) for tool in head.tools]}]
    config: Block = {"maxOutputTokens": head.max_tokens}
    if head.temperature is not None:
        config["temperature"] = head.temperature
    thinking = _thinking(head)
    if thinking:
        config["thinkingConfig"] = thinking
    request["generationConfig"] = config
    request["contents"] = []
    return request


def _declared(tool: Block) -> Block:
    taken = parameters(tool["input_schema"])
    told = {"name": tool["name"], "description": tool["description"]}
    return told if taken is None else {**told, "parametersJsonSchema": taken}


def _thinking(head: PromptHead) -> Block:
    """Return the thinking options, in the terms of the model's generation."""
    number = generation(head.model)
    found: Block = {}
    kind = (head.thinking or {}).get("type")
    if kind == "adaptive":
        found["includeThoughts"] = True
    if head.effort and number >= 3:  # these models always think
        found["thinkingLevel"] = _LEVELS.get(head.effort, "high")
    elif kind == "disabled" and number >= 3:
        found["thinkingLevel"] = "low" if "pro" in head.model else "minimal"
    elif kind == "disabled" and number:
        found["thinkingBudget"] = LEAST_BUDGET if "pro" in head.model else 0
    elif head.effort and number:
        found["thinkingBudget"] = _BUDGETS.get(head.effort, _BUDGETS["max"])
    return found


def _dump(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # a lone surrogate is not a valid character


KEPT = frozenset(
    {
        "$ref", "type", "format", "title", "description", "enum", "minItems", "maxItems",
        "minimum", "maximum", "required",
    }
)  # fmt: skip
"""Keywords that are passed on unchanged. `pattern` is not: some dialects of it are refused."""
_SCHEMAS = ("properties", "$defs")
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "prefixItems": "prefixItems"}
_FORMATS = frozenset({"date-time", "date", "time", "enum", "int32", "int64", "float", "double"})


def parameters(schema: Block) -> Block | None:
    """Return a tool's `parametersJsonSchema`, or None without parameters.

    The API refuses an empty schema.
    """
    taken = _taken(schema)
    return taken if taken.get("properties") or "$ref" in taken or "anyOf" in taken else None


def _taken(schema: Any) -> Block:
    if not isinstance(schema, dict):  # `true` and `false` are schemas too
        return {}
    found: Block = {}
    for word, value in schema.items():
        if word == "definitions":
            word = "$defs"
        if word == "$ref":
            found["$ref"] = str(value).replace("#/definitions/", "#/$defs/")
        elif word in _SCHEMAS and isinstance(value, dict):
            found[word] = {name: _taken(each) for name, each in value.items()}
        elif word in _LISTS and isinstance(value, list):
            found[_LISTS[word]] = [_taken(each) for each in value]
        elif word == "items":
            found["items"] = _taken(value)
        elif word == "additionalProperties":
            found[word] = value if isinstance(value, bool) else _taken(value)
        elif word == "allOf" and isinstance(value, list) and len(value) == 1:
            found |= _taken(value[0])
        elif word == "const" and isinstance(value, str | int | float):
            _add_enum(found, [value])
        elif word == "enum" and isinstance(value, list):
            _add_enum(found, value)
        elif word == "format" and value not in _FORMATS:
            continue
        elif word in KEPT:
            found[word] = value
    if "required" in found:
        known = found.get("properties", {})
        found["required"] = [name for name in found["required"] if name in known]
        if not found["required"]:
            del found["required"]
    return found


def _add_enum(found: Block, values: list[Any]) -> None:
    """Add an enum of strings or of numbers. Other values are not supported."""
    plain = [value for value in values if value is not None]
    if plain and all(isinstance(value, str) for value in plain):
        found["enum"] = plain
        found.setdefault("type", "string")
    elif plain and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in plain
    ):
        found["enum"] = plain
