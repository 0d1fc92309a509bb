"""The checks of requests by the Messages API, with its error messages.

Stricter than the real one in two ways, so that Vel does not rely on its leniency: roles must
alternate (it would merge neighbours), and a conversation ends with a user message.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.messages_images import image_problem, images_problem

SAMPLING_FIELDS = {"temperature", "top_p", "top_k"}
"""Accepted up to API version 2023-06-01, and refused since then."""

TOP_LEVEL_FIELDS = {
    "model", "max_tokens", "messages", "cache_control", "container", "diagnostics",
    "inference_geo", "metadata", "output_config", "service_tier", "speed", "stop_sequences",
    "stream", "system", "thinking", "tool_choice", "tools",
}  # fmt: skip

BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "cache_control", "title", "context", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}

ROLE_BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}

TOOL_FIELDS = {
    "name", "description", "input_schema", "cache_control", "type", "strict", "defer_loading",
    "allowed_callers", "eager_input_streaming", "input_examples",
}  # fmt: skip

MAX_BREAKPOINTS = 4
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


class Refused(Exception):
    """The request breaks a rule. The text is the API's message."""


def parse_body(body: bytes) -> dict[str, Any]:
    """Return the body as an object. Lone surrogates are refused, as by the real parser."""
    try:
        parsed = json.loads(body)
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Refused(f"The request body is not valid JSON: {error.reason}") from error
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise Refused("The request body is not valid JSON: expected an object")
    return parsed


def check_request(request: dict[str, Any], api_version: str) -> None:
    """Raise `Refused` for the first rule that the request breaks."""
    allowed = TOP_LEVEL_FIELDS | (SAMPLING_FIELDS if api_version == "2023-06-01" else set())
    _no_extras(request, allowed, "")
    for name in ("model", "max_tokens", "messages"):
        if name not in request:
            raise Refused(f"{name}: Field required")
    if not isinstance(request["model"], str) or not request["model"]:
        raise Refused("model: String should have at least 1 character")
    if not isinstance(request["max_tokens"], int) or request["max_tokens"] < 1:
        raise Refused("max_tokens: Input should be greater than or equal to 1")
    if not isinstance(request.get("stream", False), bool):
        raise Refused("stream: Input should be a valid boolean")
    _check_thinking(request)
    _check_system(request.get("system", "x"))
    _check_tools(request.get("tools", []))
    _check_messages(request["messages"])
    if problem := images_problem(request["messages"]):
        raise Refused(f"messages: {problem}")
    _check_breakpoints(request)


def _no_extras(value: dict[str, Any], allowed: set[str], where: str) -> None:
    for name in value:
        if name not in allowed:
            raise Refused(f"{where}{name}: Extra inputs are not permitted")


def _check_thinking(request: dict[str, Any]) -> None:
    thinking = request.get("thinking")
    if thinking is not None:
        kind = thinking.get("type")
        if kind not in {"adaptive", "enabled", "disabled", "between_tools"}:
            raise Refused(f"thinking: Input tag '{kind}' found using 'type' does not match")
        _no_extras(thinking, {"type", "display", "budget_tokens"}, f"thinking.{kind}.")
        if kind == "enabled":
            budget = thinking.get("budget_tokens", 0)
            if budget < 1024:
                raise Refused("thinking.enabled.budget_tokens: should be at least 1024")
            if budget >= request["max_tokens"]:
                raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`")
    output = request.get("output_config")
    if output is not None:
        _no_extras(output, {"effort", "format"}, "output_config.")
        if output.get("effort", "low") not in {"low", "medium", "high", "xhigh", "max"}:
            raise Refused("output_config.effort: Input should be 'low', 'medium', 'high' or 'max'")


def _check_system(system: Any) -> None:
    if isinstance(system, str):
        return
    for index, block in enumerate(system):
        if block.get("type") != "text":
            raise Refused(f"system.{index}.type: Input should be 'text'")
        _no_extras(block, BLOCK_FIELDS["text"], f"system.{index}.")
        if not block.get("text"):
            raise Refused("system: text content blocks must be non-empty")


def _check_tools(tools: list[dict[str, Any]]) -> None:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools.{index}.custom."
        _no_extras(tool, TOOL_FIELDS, where)
        name = tool.get("name", "")
        if not _TOOL_NAME.fullmatch(name):
            raise Refused(f"{where}name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if name in names:
            raise Refused("tools: Tool names must be unique.")
        names.add(name)
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            raise Refused(f"{where}input_schema: Field required")
        if schema.get("type") != "object":
            raise Refused(f"{where}input_schema.type: Input should be 'object'")


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    if messages[0].get("role") != "user":
        raise Refused('messages: first message must use the "user" role')
    previous_role = ""
    open_calls: dict[str, None] = {}
    seen_calls: set[str] = set()
    for index, message in enumerate(messages):
        _no_extras(message, {"role", "content"}, f"messages.{index}.")
        role = message["role"]
        if role not in ROLE_BLOCKS:
            raise Refused(f"messages.{index}.role: Input should be 'user' or 'assistant'")
        if role == previous_role:
            raise Refused(
                'messages: roles must alternate between "user" and "assistant", but found '
                f'multiple "{role}" roles in a row'
            )
        previous_role = role
        blocks = _blocks(message, index)
        if role == "user":
            _check_results(blocks, open_calls, index)
        open_calls = _calls(blocks, seen_calls, index) if role == "assistant" else {}
    if previous_role == "assistant":
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )


def _blocks(message: dict[str, Any], index: int) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not content:
        raise Refused(f"messages.{index}: user messages must have non-empty content")
    for position, block in enumerate(content):
        _check_block(block, ROLE_BLOCKS[message["role"]], f"messages.{index}.content.{position}")
    blocks: list[dict[str, Any]] = content
    return blocks


def _check_block(block: Any, allowed: set[str], where: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in allowed:
        raise Refused(f"{where}: Input tag '{kind}' found using 'type' does not match {allowed}")
    _no_extras(block, BLOCK_FIELDS[kind], f"{where}.{kind}.")
    if kind == "text":
        _check_text(block)
    elif kind == "image":
        if problem := image_problem(block):
            raise Refused(f"{where}.image.{problem}")
    elif kind == "tool_use":
        if not isinstance(block.get("input"), dict):
            raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")
        if not _TOOL_NAME.fullmatch(block.get("name", "")):
            raise Refused(f"{where}.tool_use.name: String should match pattern")
    elif kind == "tool_result":
        _check_result_content(block, where)
    elif kind == "thinking" and not (block.get("signature") and "thinking" in block):
        raise Refused(f"{where}.thinking.signature: Field required")


def _check_text(block: dict[str, Any]) -> None:
    if not block.get("text"):
        raise Refused("messages: text content blocks must be non-empty")
    if not block["text"].strip():
        raise Refused("messages: text content blocks must contain non-whitespace text")


def _check_result_content(block: dict[str, Any], where: str) -> None:
    content = block.get("content", "")
    if isinstance(content, str):
        return
    for position, part in enumerate(content):
        kind = part.get("type")
        if kind not in {"text", "image", "document"}:
            raise Refused(f"{where}.tool_result.content.{position}: Input tag '{kind}' not allowed")
        if kind == "text":
            _check_text(part)
        elif block.get("is_error"):
            raise Refused(
                f"{where}.tool_result: all content must be type text if `is_error` is true"
            )


def _calls(blocks: list[dict[str, Any]], seen: set[str], index: int) -> dict[str, None]:
    calls: dict[str, None] = {}
    for position, block in enumerate(blocks):
        if block["type"] != "tool_use":
            continue
        call_id = block.get("id", "")
        if not _CALL_ID.fullmatch(call_id):
            raise Refused(
                f"messages.{index}.content.{position}.tool_use.id: String should match pattern "
                "'^[a-zA-Z0-9_-]+$'"
            )
        if call_id in seen:
            raise Refused("messages: `tool_use` ids must be unique")
        seen.add(call_id)
        calls[call_id] = None
    return calls


def _check_results(blocks: list[dict[str, Any]], calls: dict[str, None], index: int) -> None:
    missing = dict(calls)
    for position, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        call_id = block.get("tool_use_id", "")
        if call_id not in calls:
            raise Refused(
                f"messages.{index}.content.{position}: unexpected `tool_use_id` found in "
                f"`tool_result` blocks: {call_id}. Each `tool_result` block must have a "
                "corresponding `tool_use` block in the previous message."
            )
        if call_id not in missing:
            raise Refused(
                f"messages.{index}.content.{position}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {call_id}"
            )
        del missing[call_id]
    if missing:
        raise Refused(
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
    if any(block["type"] != "tool_result" for block in blocks[: len(calls)]):
        raise Refused(
            f"messages.{index}: Did not find {len(calls)} `tool_result` block(s) at the "
            "beginning of this message. Messages following `tool_use` blocks must begin with a "
            "matching number of `tool_result` blocks."
        )


def _check_breakpoints(request: dict[str, Any]) -> None:
    parts = [request, *request.get("tools", [])]
    if isinstance(request.get("system"), list):
        parts += request["system"]
    for message in request["messages"]:
        if isinstance(message["content"], list):
            parts += message["content"]
    marked = [part["cache_control"] for part in parts if part.get("cache_control")]
    for mark in marked:
        if mark.get("type") != "ephemeral" or not set(mark) <= {"type", "ttl"}:
            raise Refused("cache_control: Input should be {'type': 'ephemeral'}")
    if len(marked) > MAX_BREAKPOINTS:
        raise Refused(
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {len(marked)}."
        )
