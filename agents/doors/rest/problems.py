"""All errors as problem details (RFC 9457), `application/problem+json`.

Fields: `{type, title, status, detail, code, errors?}`. `code` is a stable word for programs;
`errors` lists the invalid fields of a body or query.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from rest_framework.exceptions import APIException, ErrorDetail, NotAuthenticated, ValidationError
from rest_framework.response import Response
from rest_framework.views import set_rollback

from agents.disk_space import full_disk
from agents.services.errors import NoSpace, ServiceError
from agents.services.tokens import HEADER

logger = logging.getLogger("agents.api")

CONTENT_TYPE = "application/problem+json"
RETRY_SECONDS = 2
HOW_TO_SIGN_IN = f"Sign in, or send a token: {HEADER}. `vel token create USER` creates one."


def problem(
    status: int,
    *,
    code: str,
    detail: str,
    errors: Mapping[str, list[str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a problem response, with `code` for programs and `detail` for people."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors:
        body["errors"] = errors
    return Response(body, status=status, headers=headers, content_type=CONTENT_TYPE)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Return the response to any exception of a view. Logs unexpected ones and returns 500."""
    set_rollback()
    if text := full_disk(error):
        # Without a traceback: the log may be on the full disk.
        logger.error("%s: %s", _asked(context), text)
        error = NoSpace(text)
    if isinstance(error, ServiceError):
        return problem(error.http_status, code=error.code, detail=error.message)
    if isinstance(error, ValidationError):
        return _of_validation(error)
    if isinstance(error, NotAuthenticated):
        error.detail = ErrorDetail(HOW_TO_SIGN_IN, "not_authenticated")
    if isinstance(error, APIException):
        return _of_api_exception(error)
    if isinstance(error, Http404):
        return problem(404, code="not_found", detail="There is nothing here.")
    if isinstance(error, PermissionDenied):
        return problem(403, code="not_allowed", detail="You may not do this.")
    if isinstance(error, RequestDataTooBig):
        return problem(
            413,
            code="body_too_large",
            detail="The body is larger than this server accepts: send less.",
        )
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return problem(400, code="bad_request", detail="The request could not be read.")
    _log(error, context)
    if isinstance(error, OperationalError | InterfaceError):
        return problem(
            503,
            code="database_unavailable",
            detail="The database is busy or cannot be reached: try again in a moment.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )
    return problem(500, code="internal_error", detail="This failed on our side and was logged.")


def _of_validation(error: ValidationError) -> Response:
    fields = error.detail if isinstance(error.detail, dict) else {"body": error.detail}
    errors = {
        str(name): [str(text) for text in (said if isinstance(said, list) else [said])]
        for name, said in fields.items()
    }
    # A body that is not an object has no field to refer to.
    errors = {"body" if name == "non_field_errors" else name: said for name, said in errors.items()}
    detail = " ".join(f"{name}: {said[0]}" for name, said in errors.items() if said)
    return problem(400, code="invalid", detail=detail, errors=errors)


def _of_api_exception(error: APIException) -> Response:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = f"{wait:.0f}"
    code = error.get_codes()
    return problem(
        error.status_code,
        code=code if isinstance(code, str) else error.default_code,
        detail=str(error.detail),
        headers=headers,
    )


def _log(error: Exception, context: dict[str, Any]) -> None:
    logger.error("%s failed: %s", _asked(context), type(error).__name__, exc_info=error)


def _asked(context: dict[str, Any]) -> str:
    request = context.get("request")
    return f"{getattr(request, 'method', '?')} {getattr(request, 'path', '?')!r}"
