"""The rules of the Gemini API for requests, as strict as the real ones."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from tests.support.messages_validation import Refused

TOP = {"systemInstruction", "tools", "generationConfig", "contents", "toolConfig", "safetySettings"}
CONFIG = {"maxOutputTokens", "temperature", "thinkingConfig"}
THINKING = {"includeThoughts", "thinkingBudget", "thinkingLevel"}
LEVELS = {"minimal", "low", "medium", "high"}
DATA = ("text", "functionCall", "functionResponse", "inlineData")
PART = {*DATA, "thought", "thoughtSignature"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
SCHEMA = {
    "$ref", "$defs", "type", "format", "title", "description", "enum", "items", "prefixItems",
    "minItems", "maxItems", "minimum", "maximum", "anyOf", "properties", "additionalProperties",
    "required", "propertyOrdering",
}  # fmt: skip
ANY_SIGNATURE = "skip_thought_signature_validator"


def generation(model: str) -> int:
    found = re.search(r"gemini-(\d+)", model)
    return int(found[1]) if found else 0


def check_request(request: Any, model: str) -> None:
    """Check a request. Raises `Refused` if it breaks a rule."""
    _keys(request, TOP, "the request")
    contents = request.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    for part in request.get("systemInstruction", {}).get("parts", []):
        if not part.get("text"):
            raise Refused("systemInstruction: a part has no text")
    _check_config(request.get("generationConfig", {}), model)
    names = _check_tools(request.get("tools", []))
    before = ""
    for number, content in enumerate(contents):
        role = content.get("role")
        if set(content) != {"role", "parts"} or role not in ("user", "model"):
            raise Refused("Please use a valid role: user, model.")
        if role == before:
            raise Refused("Please ensure that multiturn requests alternate between user and model.")
        before = role
        if not content["parts"]:
            raise Refused(f"contents[{number}].parts must not be empty")
        for part in content["parts"]:
            _check_part(part, role, names)
    if contents[0]["role"] != "user" or contents[-1]["role"] != "user":
        raise Refused("Please ensure that multiturn requests begin and end with a user role.")
    _check_pairs(contents)


def _keys(value: Any, known: set[str], what: str) -> None:
    if not isinstance(value, dict):
        raise Refused(f"Invalid value at {what}")
    if unknown := set(value) - known:
        raise Refused(f'Invalid JSON payload received. Unknown name "{unknown.pop()}" at {what}')


def _check_config(config: Any, model: str) -> None:
    _keys(config, CONFIG, "generation_config")
    tokens = config.get("maxOutputTokens", 1)
    if not isinstance(tokens, int) or tokens < 1:
        raise Refused("max_output_tokens must be positive")
    thinking = config.get("thinkingConfig", {})
    _keys(thinking, THINKING, "generation_config.thinking_config")
    if {"thinkingBudget", "thinkingLevel"} <= set(thinking):
        raise Refused("You can only set only one of thinking budget and thinking level.")
    level = thinking.get("thinkingLevel")
    if level is not None and (generation(model) < 3 or level not in LEVELS):
        raise Refused("Thinking level is not supported for this model.")
    if thinking.get("thinkingBudget") == 0 and "pro" in model:
        raise Refused("Budget 0 is invalid. This model only works in thinking mode.")


def _check_tools(tools: Any) -> set[str]:
    names: set[str] = set()
    for tool in tools:
        _keys(tool, {"functionDeclarations"}, "tools")
        for each in tool["functionDeclarations"]:
            _keys(each, {"name", "description", "parametersJsonSchema"}, "function_declarations")
            if not NAME.fullmatch(each["name"]):
                raise Refused(f"Invalid function name {each['name']!r}.")
            if each["name"] in names:
                raise Refused(f"Duplicate function declaration found: {each['name']}")
            names.add(each["name"])
            if "parametersJsonSchema" in each:
                _check_schema(each["parametersJsonSchema"], each["name"])
                if each["parametersJsonSchema"].get("properties") == {}:
                    raise Refused("properties: should be non-empty for OBJECT type")
    return names


def _check_schema(schema: Any, place: str) -> None:
    _keys(schema, SCHEMA, place)
    for value in schema.get("enum", ()):
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise Refused(f"{place}: enum: only strings and numbers")
    for word in ("properties", "$defs"):
        for name, each in schema.get(word, {}).items():
            _check_schema(each, f"{place}.{name}")
    for name in schema.get("required", ()):
        if name not in schema.get("properties", {}):
            raise Refused(f"{place}.required[0]: property is not defined")
    for each in [*schema.get("anyOf", ()), *schema.get("prefixItems", ())]:
        _check_schema(each, place)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            _check_schema(schema[word], place)


def _check_part(part: Any, role: str, names: set[str]) -> None:
    _keys(part, PART, "contents.parts")
    kinds = [kind for kind in DATA if kind in part]
    if len(kinds) != 1:
        raise Refused("contents.parts.data: required oneof field 'data' must have one field")
    kind = kinds[0]
    if kind == "text" and not (part["text"] or part.get("thoughtSignature")):
        raise Refused("contents.parts: an empty text")
    if ("thoughtSignature" in part or "thought" in part) and role != "model":
        raise Refused("a thought signature belongs to the model")
    if kind == "functionCall":
        _keys(part[kind], {"id", "name", "args"}, "function_call")
        if role != "model" or not isinstance(part[kind].get("args"), dict):
            raise Refused("function_call: args is an object, the role is model")
    elif kind == "functionResponse":
        _keys(part[kind], {"id", "name", "response"}, "function_response")
        if role != "user" or not isinstance(part[kind].get("response"), dict):
            raise Refused("function_response: response is an object, the role is user")
        if not part[kind].get("name"):
            raise Refused("GenerateContentRequest.function_response.name: Name cannot be empty.")
    elif kind == "inlineData":
        if set(part[kind]) != {"mimeType", "data"} or not part[kind]["mimeType"]:
            raise Refused("inline_data needs a MIME type and data")
        base64.b64decode(part[kind]["data"], validate=True)


def _check_pairs(contents: list[Any]) -> None:
    """Check that calls and responses have the same number, names and IDs, and follow each other."""
    waiting: list[Any] = []
    for content in contents:
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        told = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if len(told) != len(waiting):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        for call, response in zip(waiting, told, strict=True):
            if (call["name"], call.get("id")) != (response["name"], response.get("id")):
                raise Refused(f"a response of {response['name']} does not fit the call")
        waiting = calls


class Signatures:
    """The signatures that the server has sent, and the check that they come back unchanged."""

    def __init__(self) -> None:
        self._signed: dict[str, str] = {}

    def sign(self, part: dict[str, Any]) -> None:
        signature = base64.b64encode(f"signed-{len(self._signed):04}".encode()).decode()
        self._signed[signature] = _said(part)
        part["thoughtSignature"] = signature

    def check(self, contents: list[Any], model: str) -> None:
        """Check the signatures of a request. Raises `Refused` if one is missing or changed."""
        turn = 0
        for number, content in enumerate(contents):
            if content["role"] == "user" and not any(
                "functionResponse" in part for part in content["parts"]
            ):
                turn = number
        for number, content in enumerate(contents):
            first_call = True
            for part in content["parts"]:
                signature = part.get("thoughtSignature")
                is_call = "functionCall" in part
                if signature is None:
                    if generation(model) >= 3 and number > turn and is_call and first_call:
                        raise Refused(
                            "Function call is missing a thought_signature in functionCall parts."
                        )
                elif signature != ANY_SIGNATURE and self._signed.get(signature) != _said(part):
                    raise Refused("Corrupted thought signature.")
                first_call = first_call and not is_call


def _said(part: dict[str, Any]) -> str:
    plain = {name: value for name, value in part.items() if name != "thoughtSignature"}
    return json.dumps(plain, sort_keys=True)
