"""Examples for the OpenAPI document: typical values by field name, combined by the schema.

Each body and response, including those of new endpoints, has a valid example. A name without an
entry here is shown as `…`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from agents.events.catalogue.runs import RunStarted

_MOMENT = "2026-01-31T12:00:00.123456Z"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_RUN, _THREAD, _AGENT = "01kb4f6y8m3q9t5w7x1z2c4v6b", "01kb4e2s7d9f1g3h5j7k9m2n4p", "01kb3a"

# A name has different types in different forms: the first value of the right type is used.
_BY_NAME: dict[str, tuple[Any, ...]] = {
    "id": (_RUN, 7),
    "run": (_RUN,),
    "run_id": (_RUN,),
    "thread": (_THREAD,),
    "agent": ("writer",),
    "agents": ([_AGENT],),
    "slug": ("writer",),
    "name": ("weekly-report",),
    "username": ("ann",),
    "user": ("ann",),
    "by": ("ann",),
    "owner": ("ann",),
    "actor": ("ann",),
    "actor_id": ("3",),
    "created_by": ("ann",),
    "decided_by": ("ann",),
    "description": ("Writes the weekly report from the team's notes.",),
    "instructions": ("# Weekly report\n\nStart with the numbers.",),
    "provider": ("anthropic",),
    "model": ("claude-sonnet-4-5",),
    "message": ("Write a poem about rain",),
    "output": ("Rain falls …",),
    "title": ("A poem about rain", "Weekly report"),
    "text": ("Write a poem about rain",),
    "tool": ("execute",),
    "call_id": ("toolu_1",),
    "input": ({"command": "python report.py"},),
    "result": ("done",),
    "prompt": ("This command runs a program.",),
    "digest": (_HASH,),
    "sha256": (_HASH,),
    "content_hash": (_HASH,),
    "reason": ("It matches my request.",),
    "note": ("",),
    "status": ("completed", "pending", 200),
    "wait_reason": ("",),
    "held": (False,),
    "waiting_for_space": (None,),
    "finish_reason": ("end_turn",),
    "allowed_decisions": (["approve", "edit", "reject", "respond"],),
    "decision": ("approve",),
    "path": ("/sandbox/outputs/report.md",),
    "file": ("(the bytes)",),
    "content": ("Ada likes tables.",),
    "content_type": ("text/markdown",),
    "operation": ("write",),
    "key": ("review-42",),
    "cost": ("0.001234",),
    "code": ("max_turns",),
    "type": (RunStarted.type, "file"),
    "seq": (1,),
    "after": (0,),
    "next_after": (1,),
    "next_cursor": (None,),
    "next_before": (None,),
    "children": (0,),
    "depth": (0,),
    "parent": (None,),
    "subagent": ("",),
    "subagents": ([],),
    "findings": (0, []),
    "version": (3, "1.2.0"),
    "latest_version": (3,),
    "revision": (4,),
    "number": (3,),
    "scope": ("library",),
    "scopes": (["read", "run"],),
    "tags": (["reports"],),
    "prefix": ("vel_Kc3x9Q",),
    "secret": ("vel_Kc3x9Q…",),
    "token": ("xoxb-…",),
    "days": (30,),
    "size": (5120,),
    "size_bytes": (5120,),
    "structured_output": (None,),
    "output_schema": (None,),
    "context": (None,),
    "error": (None,),
    "always": (None,),
    "memory": (None,),
    "changes": (None, {}),
    "edited_input": (None,),
    "condition": ({},),
    "diff": ("--- a\n+++ b\n@@ -1 +1 @@\n-Rain\n+Snow\n",),
    "source": ("api",),
    "subagent_of": (None,),
    "messages": ([{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}],),
    "data": ({},),
    "interrupt_on": ({"execute": True},),
    "approval_rules": ([],),
    "trigger": ("submit-message",),
}
_BY_FORM: dict[str, Any] = {
    "RunBody": {"agent": "writer", "message": "Write a poem about rain"},
    "RunForm": {"agent": "writer", "message": "What does it say?", "file": ["(the bytes)"]},
    "DecisionBody": {"decision": "approve", "digest": _HASH},
    "ResumeBody": {},
    "RestoreBody": {"run": _RUN, "turn": 2, "to": "before"},
}
"""Complete examples for forms with fields that exclude each other."""
_BY_FORMAT = {
    "date-time": _MOMENT,
    "date": "2026-01-31",
    "decimal": "0.001234",
    "binary": "(the bytes)",
}
_PROBLEMS: dict[int, tuple[str, str]] = {
    400: ("invalid", "mesage: Unknown; known are: agent, message, thread, key, queue."),
    401: ("authentication_failed", "The token is unknown, expired or revoked: make a new one."),
    403: (
        "insufficient_scope",
        "This needs a token with the scope 'run'; this one has read: make another in your profile.",
    ),
    404: ("not_found", "There is no run '01kb4f' that you may see."),
    409: ("stale", "It has changed since: read it again."),
    411: ("length_required", "Send the body with a Content-Length, not in chunks."),
    412: ("stale", "It has changed since you read it: read it again."),
    413: ("body_too_large", "The body is larger than this server accepts: send less."),
    415: ("unsupported_media_type", 'Unsupported media type "text/plain" in request.'),
    429: ("throttled", "A token may send 600 requests a minute. Wait 12 s and try again."),
    503: (
        "database_unavailable",
        "The database is busy or cannot be reached: try again in a moment.",
    ),
    507: (
        "disk_full",
        "The disk of the data directory is full (0 MB left). Erase threads or delete other files, "
        "or ask the operator, and try again.",
    ),
}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def problem_example(status: int) -> dict[str, Any]:
    """Return a problem with this status."""
    code, detail = _PROBLEMS[status]
    shown: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if status == HTTPStatus.BAD_REQUEST:
        name, _, said = detail.partition(": ")
        shown["errors"] = {name: [said]}
    return shown


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> Any:
    """Return a valid value for `schema`, a field with this `name`.

    `schemas` are the components of the document. A body contains its required fields and those with
    a typical value other than null.
    """
    if "$ref" in schema:
        form = schema["$ref"].rpartition("/")[2]
        return _BY_FORM.get(form) or example_of(schemas[form], schemas, name)
    for many in ("oneOf", "anyOf", "allOf"):
        if many in schema:
            return example_of(schema[many][0], schemas, name)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "properties" in schema:
        return {
            field: example_of(said, schemas, field)
            for field, said in schema["properties"].items()
            if field in schema.get("required", ()) or _BY_NAME.get(field, (None,)) != (None,)
        }
    for value in _BY_NAME.get(name, ()):
        if _fits(value, schema, kinds):
            return value
    return _any_of(schema, kinds, schemas, name)


def _fits(value: Any, schema: Mapping[str, Any], kinds: list[str]) -> bool:
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "items" in schema and isinstance(value, list) and "$ref" in schema["items"] and value:
        return False
    # In Python, True is an integer.
    is_kind = [isinstance(value, _KINDS[k]) and not isinstance(value, bool) for k in kinds]
    return any(is_kind) or not kinds


def _any_of(
    schema: Mapping[str, Any], kinds: list[str], schemas: Mapping[str, Any], name: str
) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    kind = kinds[0] if kinds else "object"
    if kind == "array":
        return [example_of(schema["items"], schemas, name)]
    plain: dict[str, Any] = {
        "string": "…",
        "integer": schema.get("default", schema.get("minimum", 0)),
        "number": schema.get("default", 0.5),
        "boolean": schema.get("default", False),
        "null": None,
    }
    return plain.get(kind, {})


def with_examples(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with an example for each JSON body and response."""
    schemas = document["components"]["schemas"]
    for item in document["paths"].values():
        for said in item.values():
            for each in (said.get("requestBody", {}), *said["responses"].values()):
                for media_type, form in each.get("content", {}).items():
                    if media_type == "application/json" or "multipart" in media_type:
                        form["example"] = example_of(form["schema"], schemas)
    return document
