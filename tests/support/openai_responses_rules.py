"""The checks of requests by the Responses API, with its error messages.

Stricter than the real one in two ways, so that Vel does not rely on its leniency: results
immediately follow their calls, and the input ends with a user's message or a tool's result.
"""

from __future__ import annotations

import json
import re
from typing import Any

from openai.types import responses as types
from openai.types.responses import response_create_params as params
from openai.types.responses.easy_input_message_param import EasyInputMessageParam
from openai.types.responses.function_tool_param import FunctionToolParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.shared_params.reasoning import Reasoning

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

TOP_LEVEL = fields_of(params.ResponseCreateParamsBase, params.ResponseCreateParamsStreaming)
ITEMS = {
    "message": fields_of(EasyInputMessageParam),
    "function_call": fields_of(types.ResponseFunctionToolCallParam) | {"async"},
    "function_call_output": fields_of(FunctionCallOutput),
    "reasoning": fields_of(types.ResponseReasoningItemParam),
}
PARTS = {
    "user": {
        "input_text": fields_of(types.ResponseInputTextParam),
        "input_image": fields_of(types.ResponseInputImageParam),
    },
    "assistant": {"output_text": {"type", "text", "annotations"}, "refusal": {"type", "refusal"}},
}
WITHOUT_REASONING = re.compile(r"gpt-4")


def check_request(request: dict[str, Any]) -> None:
    """Raise `Refused` for the first rule that the request breaks."""
    no_unknown(request, TOP_LEVEL, "")
    text_at(request.get("model"), "model", shortest=1)
    limit = request.get("max_output_tokens", 16)
    if not isinstance(limit, int) or limit < 16:
        raise Refused("Invalid 'max_output_tokens': integer below minimum value. Expected >= 16")
    if request.get("stream") is not True:
        raise Refused("only streams are made here")
    text_at(request.get("instructions", ""), "instructions")
    text_at(request.get("prompt_cache_key", ""), "prompt_cache_key", longest=64)
    reasons = not WITHOUT_REASONING.match(request["model"])
    if request.get("include") and not reasons:
        raise Refused("Encrypted content is not supported with this model.")
    reasoning = no_unknown(request.get("reasoning", {}), fields_of(Reasoning), "reasoning")
    if reasoning and not reasons:
        raise Refused("Unsupported parameter: 'reasoning' is not supported with this model.")
    check_effort(reasoning.get("effort", "low"), "reasoning.effort")
    if "temperature" in request and reasons:
        raise Refused("Unsupported parameter: 'temperature' is not supported with this model.")
    _check_format(request.get("text", {}))
    names: set[str] = set()
    for index, tool in enumerate(request.get("tools", ())):
        where = f"tools[{index}]"
        no_unknown(tool, fields_of(FunctionToolParam), where)
        if tool.get("type") != "function":
            raise Refused(f"Invalid value: '{tool.get('type')}' in '{where}.type'.")
        check_function(tool, where, names)
        if tool.get("strict", True):
            check_strict(tool["parameters"])
    _check_input(request.get("input"))


def _check_format(text: dict[str, Any]) -> None:
    no_unknown(text, {"format", "verbosity"}, "text")
    form = text.get("format", {"type": "text"})
    no_unknown(form, {"type", "name", "schema", "strict", "description"}, "text.format")
    if form["type"] == "json_schema":
        text_at(form.get("name"), "text.format.name", shortest=1, longest=64)
        if form.get("strict"):
            check_strict(form["schema"])


def _check_input(items: Any) -> None:
    if not isinstance(items, list) or not items:
        raise Refused("One of 'input' or 'previous_response_id' must be provided.")
    ids = Ids(64)
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind not in ITEMS:
            raise Refused(f"Invalid value: '{kind}' in '{where}.type'.")
        no_unknown(item, ITEMS[kind], where)
        if any(value is None for value in item.values()):
            raise Refused(f"Invalid type in '{where}': got null instead.")
        if ids.open and kind == "message" and item["role"] == "user":
            raise Refused(f"No tool output found for function call {ids.open[0]}.")
        if kind == "message":
            _check_message(item, where)
        elif kind == "function_call":
            ids.call(item.get("call_id"), f"{where}.call_id")
            text_at(item.get("name"), f"{where}.name", shortest=1)
            if not isinstance(json.loads(text_at(item.get("arguments"), where)), dict):
                raise Refused(f"Invalid '{where}.arguments'.")
        elif kind == "function_call_output":
            _check_output(item, where, ids)
        else:
            _check_reasoning(items, index)
    if ids.open:
        raise Refused(f"No tool output found for function call {ids.open[0]}.")
    last = items[-1]
    if last.get("role") == "assistant" or last["type"] in ("function_call", "reasoning"):
        raise Refused("The input must not end with what the model wrote.")


def _check_message(item: dict[str, Any], where: str) -> None:
    role = item.get("role")
    if role not in PARTS:
        raise Refused(f"Invalid value: '{role}' in '{where}.role'.")
    if not isinstance(item.get("content"), list) or not item["content"]:
        raise Refused(f"Invalid '{where}.content': expected a non-empty array.")
    for position, part in enumerate(item["content"]):
        _check_part(part, PARTS[role], f"{where}.content[{position}]")


def _check_part(part: Any, allowed: dict[str, set[str]], where: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in allowed:
        supported = " and ".join(f"'{name}'" for name in allowed)
        raise Refused(f"Invalid value: '{kind}'. Supported values are: {supported}.")
    no_unknown(part, allowed[kind], where)
    if kind == "input_image":
        check_picture(part.get("image_url"), f"{where}.image_url")
    else:
        text_at(part.get("text", part.get("refusal")), where)


def _check_output(item: dict[str, Any], where: str, ids: Ids) -> None:
    call_id = item.get("call_id")
    ids.result(call_id, f"No tool call found for function call output with call_id {call_id}.")
    output = item.get("output")
    if isinstance(output, list):
        for position, part in enumerate(output):
            _check_part(part, PARTS["user"], f"{where}.output[{position}]")
    else:
        text_at(output, f"{where}.output")


def _check_reasoning(items: list[Any], index: int) -> None:
    item = items[index]
    for name in ("id", "summary"):
        if name not in item:
            raise Refused(f"Missing required parameter: 'input[{index}].{name}'.")
    after = next((each for each in items[index + 1 :] if each.get("type") != "reasoning"), {})
    if after.get("role") != "assistant" and after.get("type") != "function_call":
        raise Refused(
            f"Item '{item['id']}' of type 'reasoning' was provided without its required "
            "following item."
        )
