"""The common checks of OpenAI's two protocols, with their error messages.

The fields are read from the types of the installed SDK.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tests.support.messages_validation import Refused

MAX_IMAGE_BYTES = 20 * 1024 * 1024
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:(image/(?:png|jpeg|webp|gif));base64,(.*)", re.DOTALL)
_HEADS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
EFFORTS = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}


def fields_of(*types: Any) -> set[str]:
    """Return the names of all fields of TypedDicts of the SDK."""
    return {name for each in types for name in each.__annotations__}


def no_unknown(value: Any, allowed: Iterable[str], where: str) -> dict[str, Any]:
    """Return `value` as an object without unknown fields."""
    if not isinstance(value, dict):
        raise Refused(f"Invalid type for '{where}': expected an object.")
    for name in value:
        if name not in allowed:
            path = f"{where}.{name}" if where else name
            raise Refused(f"Unknown parameter: '{path}'.")
    return value


def text_at(value: Any, where: str, *, longest: int = 10_485_760, shortest: int = 0) -> str:
    if not isinstance(value, str):
        raise Refused(f"Invalid type for '{where}': expected a string.")
    if not shortest <= len(value) <= longest:
        raise Refused(f"Invalid '{where}': string has the length {len(value)}.")
    return value


def check_function(function: dict[str, Any], where: str, names: set[str]) -> None:
    """Check a tool that the model may call: its name, and the schema of its input."""
    name = text_at(function.get("name"), f"{where}.name")
    if not _NAME.fullmatch(name):
        raise Refused(
            f"Invalid '{where}.name': string does not match pattern. Expected a string that "
            "matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
    if name in names:
        raise Refused(f"Duplicate function name: '{name}'.")
    names.add(name)
    schema = function.get("parameters")
    problem = ""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        problem = "schema must be a JSON Schema of 'type: \"object\"'"
    elif "properties" not in schema:
        problem = "In context=(), object schema missing properties."
    else:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            problem = error.message
    if problem:
        raise Refused(f"Invalid schema for function '{name}': {problem}")


def check_strict(schema: Any, where: str = "()") -> None:
    """Check a schema of structured outputs: closed objects with only required properties."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise Refused(
                f"Invalid schema for response_format: In context={where}, "
                "'additionalProperties' is required to be supplied and to be false."
            )
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            raise Refused(
                f"Invalid schema for response_format: In context={where}, 'required' is required "
                "to be supplied and to be an array including every key in properties."
            )
    for name, part in schema.get("properties", {}).items():
        check_strict(part, f"{where}.{name}")
    check_strict(schema.get("items"), f"{where}.items")
    for part in schema.get("anyOf", ()):
        check_strict(part, f"{where}.anyOf")


def check_picture(url: Any, where: str) -> None:
    found = _DATA_URL.fullmatch(text_at(url, where, longest=2 * MAX_IMAGE_BYTES))
    if not found:
        raise Refused(
            f"Invalid '{where}'. Expected a base64-encoded data URL with an image MIME type."
        )
    try:
        data = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise Refused(f"Invalid base64 image_url in '{where}'.") from None
    if not data.startswith(_HEADS[found[1]]):
        raise Refused(f"The image data in '{where}' does not represent a valid image.")


def check_effort(effort: Any, where: str) -> None:
    if effort not in EFFORTS:
        raise Refused(f"Invalid value: '{effort}'. '{where}' wants one of {sorted(EFFORTS)}.")


class Ids:
    """The IDs of calls and their results, in the order of a conversation."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._seen: set[str] = set()
        self.open: list[str] = []
        """Calls without a result."""

    def call(self, call_id: Any, where: str) -> None:
        text_at(call_id, where, longest=self._longest, shortest=1)
        if call_id in self._seen:
            raise Refused(f"Duplicate value for '{where}': '{call_id}'.")
        self._seen.add(call_id)
        self.open.append(call_id)

    def result(self, call_id: Any, refusal: str) -> None:
        if call_id not in self.open:
            raise Refused(refusal)
        self.open.remove(call_id)
