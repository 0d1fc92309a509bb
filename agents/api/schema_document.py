"""The OpenAPI document of the API, generated once per process.

drf-spectacular keeps its settings in a global object. Vel replaces all of them during generation,
so a project's `SPECTACULAR_SETTINGS` have no effect on Vel, and Vel's have none on the project.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any

from django.conf import settings
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.settings import SPECTACULAR_DEFAULTS, patched_settings

from agents.api.urls import urlpatterns
from agents.doors.openapi.examples import with_examples
from agents.doors.openapi.inspector import VelSchemaGenerator, problem_responses
from agents.models import TokenScope
from agents.services.tokens import HEADER

INTRODUCTION = """\
Programs send `Authorization: Bearer vel_…`. Pages send their session, and Django's CSRF token in
`X-CSRFToken` with every other method than `GET`. Each operation names the scope that its token
needs.

Every refusal is `application/problem+json` (RFC 9457) with a stable `code`. Lists are
`{results, next_cursor}`: send `cursor` for the next part, until `next_cursor` is null. A parameter
or field that an operation does not know is refused with 400.

In addition to the listed answers, every operation can answer 404 or 405 for an unknown endpoint or
method, 429 with `Retry-After` after too many requests, and 500 for an error on the server."""

_SCOPES = "\n".join(f"- `{scope.value}`: {scope.label}" for scope in TokenScope)
_SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "vel_…",
        "description": f"{HEADER}, or with the keyword `Token`. Scopes:\n\n{_SCOPES}",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": settings.SESSION_COOKIE_NAME,
        "description": "A browser's session; it has all scopes.",
    },
}
_making = Lock()


def _own_settings() -> dict[str, Any]:
    given = {
        "OAS_VERSION": "3.1.0",
        "TITLE": "Vel",
        "VERSION": _version(),
        "DESCRIPTION": INTRODUCTION,
        "SCHEMA_PATH_PREFIX": "",
        "APPEND_COMPONENTS": {
            "securitySchemes": _SECURITY_SCHEMES,
            "responses": problem_responses(),
        },
        "POSTPROCESSING_HOOKS": [],
        "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    }
    # `SERVE_…` and the generator class are settings of views that Vel does not use.
    defaults = {
        name: value
        for name, value in SPECTACULAR_DEFAULTS.items()
        if not name.startswith("SERVE_") and name != "DEFAULT_GENERATOR_CLASS"
    }
    return {**defaults, **given}


def _version() -> str:
    try:
        return version("vel")
    except PackageNotFoundError:
        return "0.0.0"


def _without_marks(result: Any) -> Any:
    """Return the document without drf-spectacular's own markers on choices."""
    if isinstance(result, dict):
        return {k: _without_marks(v) for k, v in result.items() if k != "x-spec-enum-id"}
    return [_without_marks(each) for each in result] if isinstance(result, list) else result


def make_document(patterns: list[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the OpenAPI 3.1 document of these URL patterns, and the warnings about it."""
    with _making, patched_settings(_own_settings()), GENERATOR_STATS.silence():
        document = VelSchemaGenerator(patterns=patterns).get_schema(public=True)
        complaints = [*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache]
    plain = _without_marks(json.loads(json.dumps(document, default=str)))
    return with_examples(plain), complaints


@cache
def api_document() -> dict[str, Any]:
    """Return the document of this API, without `servers`. Callers must not change it."""
    return make_document(urlpatterns)[0]


def document_at(server: str) -> dict[str, Any]:
    """Return the document for a client that reaches the API at the path or URL `server`."""
    return {**api_document(), "servers": [{"url": server}]}
