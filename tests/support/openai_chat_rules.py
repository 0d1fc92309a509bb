"""The checks of requests by Chat Completions, with its error messages.

Stricter than the real one in two ways, so that Vel does not rely on its leniency: roles alternate,
as the templates of many models require, and the last message is a user's or a tool's.
"""

from __future__ import annotations

import json
from typing import Any

from openai.types.chat import completion_create_params as params

from tests.support.messages_validation import Refused
from tests.support.openai_rules import (
    Ids,
    check_effort,
    check_function,
    check_picture,
    check_strict,
    fields_of,
    no_unknown,
    text_at,
)

TOP_LEVEL = fields_of(params.CompletionCreateParamsBase, params.CompletionCreateParamsStreaming) - {
    "functions",
    "function_call",
}
THOUGHTS = {"reasoning_content"}
MESSAGES = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"} | THOUGHTS,
    "tool": {"role", "content", "tool_call_id"},
}


def check_request(request: dict[str, Any]) -> None:
    """Raise `Refused` for the first rule that the request breaks."""
    no_unknown(request, TOP_LEVEL, "")
    text_at(request.get("model"), "model", shortest=1)
    if "max_tokens" in request and "max_completion_tokens" in request:
        raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at once is not supported.")
    if request.get("stream") is not True:
        raise Refused("only streams are made here")
    no_unknown(request.get("stream_options", {}), {"include_usage"}, "stream_options")
    check_effort(request.get("reasoning_effort", "low"), "reasoning_effort")
    form = request.get("response_format", {"type": "text"})
    no_unknown(form, {"type", "json_schema"}, "response_format")
    if form["type"] == "json_schema" and form["json_schema"].get("strict"):
        text_at(form["json_schema"].get("name"), "response_format.json_schema.name", shortest=1)
        check_strict(form["json_schema"]["schema"])
    if "tools" in request and not request["tools"]:
        raise Refused("[] is too short - 'tools'")
    if "parallel_tool_calls" in request and "tools" not in request:
        raise Refused("'parallel_tool_calls' is only allowed when 'tools' are specified.")
    names: set[str] = set()
    for index, tool in enumerate(request.get("tools", ())):
        no_unknown(tool, {"type", "function"}, f"tools[{index}]")
        allowed = {"name", "description", "parameters", "strict"}
        function = no_unknown(tool.get("function"), allowed, f"tools[{index}].function")
        check_function(function, f"tools[{index}].function", names)
    _check_messages(request.get("messages"))


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise Refused("Invalid 'messages': empty array.")
    ids = Ids(40)
    before = ""
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in MESSAGES:
            raise Refused(f"Invalid value: '{role}' in '{where}.role'.")
        no_unknown(message, MESSAGES[role], where)
        if role == "system" and index:
            raise Refused("System message must be at the beginning.")
        if role == before and role != "tool":
            raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
        if role == "tool":
            ids.result(
                message.get("tool_call_id"),
                f"Invalid parameter: {where} with role 'tool' must be a response to a preceding "
                "message with 'tool_calls'.",
            )
            text_at(message.get("content"), f"{where}.content")
        elif ids.open:
            raise Refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(ids.open)}"
            )
        if role == "assistant":
            _check_reply(message, where, ids)
        elif role in ("user", "system"):
            _check_content(message.get("content"), where, pictures=role == "user")
        before = role
    if ids.open or before in ("assistant", "system"):
        raise Refused("The messages must not end with what the model wrote.")


def _check_reply(message: dict[str, Any], where: str, ids: Ids) -> None:
    calls = message.get("tool_calls")
    if message.get("content") is None and not calls:
        raise Refused(f"Invalid value for 'content' in '{where}': expected a string, got null.")
    if message.get("content") is not None:
        text_at(message["content"], f"{where}.content")
    if calls is not None and not calls:
        raise Refused(f"Invalid '{where}.tool_calls': empty array.")
    for position, call in enumerate(calls or ()):
        at = f"{where}.tool_calls[{position}]"
        no_unknown(call, {"id", "type", "function"}, at)
        if call.get("type") != "function":
            raise Refused(f"Missing required parameter: '{at}.type'.")
        ids.call(call.get("id"), f"{at}.id")
        function = no_unknown(call.get("function"), {"name", "arguments"}, f"{at}.function")
        text_at(function.get("name"), at, shortest=1)
        if not isinstance(json.loads(text_at(function.get("arguments"), at)), dict):
            raise Refused(f"Invalid '{at}.function.arguments'.")


def _check_content(content: Any, where: str, *, pictures: bool) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise Refused(f"Invalid type for '{where}.content'.")
    for position, part in enumerate(content):
        at = f"{where}.content[{position}]"
        kind = part.get("type")
        if kind == "text":
            no_unknown(part, {"type", "text"}, at)
            text_at(part.get("text"), at)
        elif kind == "image_url" and pictures:
            no_unknown(part, {"type", "image_url"}, at)
            no_unknown(part["image_url"], {"url", "detail"}, at)
            check_picture(part["image_url"].get("url"), f"{at}.image_url.url")
        else:
            raise Refused(f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url'.")
