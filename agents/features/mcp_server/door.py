"""`POST /mcp`: one JSON-RPC message in, its answer out, as JSON or as a stream of events.

Cookies do not count here, so another site cannot use a visitor's browser to act. Pages of other
sites are refused by their Origin as well. There are no sessions: the id that a client receives with
`initialize` only separates its requests from those of other clients.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

from django.db import DatabaseError, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables

from agents.disk_space import full_disk
from agents.doors.trusted_origins import is_trusted_origin
from agents.features.mcp_server.bridge import answer_by
from agents.features.mcp_server.caller import Caller, Refused, caller_of, in_database_to_the_end
from agents.features.mcp_server.protocol import CALLER, PackageMissing, serve
from agents.features.mcp_server.starts import cancel_call, request_key
from agents.features.mcp_server.tools import MAX_BODY_BYTES, MAX_ID
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

SESSION_HEADER = "Mcp-Session-Id"
_SESSION = re.compile(rf"[\x21-\x7e]{{1,{MAX_ID}}}")
_INVALID_REQUEST, _REFUSED = -32600, -32000


def _without_transactions(view: Callable[..., Any]) -> Callable[..., Any]:
    """Disable ATOMIC_REQUESTS for all databases: Django does not run async views with it."""
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


@csrf_exempt
@_without_transactions
@sensitive_variables()
async def endpoint(request: HttpRequest) -> HttpResponseBase:
    """Answer one message. Refusals before the protocol are JSON-RPC errors without an id."""
    try:
        if request.method != "POST":
            raise Refused(405, "Only POST with a JSON-RPC message is supported.")
        _check_origin(request)
        # Clients often disconnect right after they cancel a call.
        caller, body, message = await in_database_to_the_end(partial(_admit, request))
        response = await answer_by(serve, request, body, **{CALLER: caller})
    except Refused as refused:
        return _refusal(refused)
    except PackageMissing:
        return _refusal(Refused(501, "This server lacks a package: pip install 'vel[mcp]'"))
    except (DatabaseError, OSError) as error:
        text = full_disk(error)
        if not text:
            raise
        return _refusal(Refused(507, text))
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"
    if message["method"] == "initialize" and response.status_code == 200:
        response[SESSION_HEADER] = secrets.token_hex(16)
    return response


def _admit(request: HttpRequest) -> tuple[Caller, bytes, dict[str, Any]]:
    caller = caller_of(request.META, _session_of(request))
    # For the audit log: the person and the token.
    request.user = caller.user  # type: ignore[assignment]  # a project may have its own model
    request.auth = caller.token  # type: ignore[attr-defined]
    body = _body_of(request)
    message = _message_of(body)
    _note_cancelled(message, caller)
    return caller, body, message


def _check_origin(request: HttpRequest) -> None:
    """Refuse pages of other sites. DNS rebinding fails too: ALLOWED_HOSTS checks the host."""
    host = request.get_host()
    origin = request.headers.get("Origin")
    own = f"{request.scheme}://{host}"
    if origin is not None and origin != own and not is_trusted_origin(origin):
        raise Refused(403, "Requests from pages of other sites are refused.")


def _session_of(request: HttpRequest) -> str:
    session = request.headers.get(SESSION_HEADER, "")
    if session and not _SESSION.fullmatch(session):
        raise Refused(400, f"{SESSION_HEADER} has 1 to {MAX_ID} visible ASCII characters.")
    return session


def _body_of(request: HttpRequest) -> bytes:
    too_long = Refused(413, f"A message has at most {MAX_BODY_BYTES:,} bytes.")
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            raise too_long
        body: bytes = request.read(MAX_BODY_BYTES + 1)
    except (ValueError, UnreadablePostError):
        raise Refused(400, "The body could not be read.") from None
    if len(body) > MAX_BODY_BYTES:
        raise too_long
    return body


def _message_of(body: bytes) -> dict[str, Any]:
    """Return the one request or notification in `body`.

    The package checks it more strictly, but its errors for an invalid envelope quote its library.
    """
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "The body is not JSON in UTF-8.") from None
    if not isinstance(message, dict):
        raise Refused(400, "Send one JSON-RPC message. Batches are not supported.")
    found = message.get("id", 0)
    if not _is_id(found) or len(str(found)) > MAX_ID:
        raise Refused(400, f"An id must be a whole number or a text of up to {MAX_ID} characters.")
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or len(method) > MAX_ID:
        raise Refused(
            400,
            'A message requires "jsonrpc": "2.0" and a method. The server sends no requests that '
            "need an answer.",
        )
    if nests_too_deep(message):
        raise Refused(400, f"The body nests deeper than {MOST_LEVELS} levels.")
    if not isinstance(message.get("params", {}), dict):
        raise Refused(400, "The params of a message must be an object.")
    return message


def _is_id(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _note_cancelled(message: dict[str, Any], caller: Caller) -> None:
    """End the run of a call that the client cancels. A lost connection ends no run."""
    if message["method"] != "notifications/cancelled":
        return
    cancelled = message.get("params", {}).get("requestId")
    if not caller.session or not _is_id(cancelled) or not caller.may_cancel:
        return
    key = request_key(caller.token.pk, caller.session, cancelled)
    reason = "the MCP client cancelled its call"
    cancel_call(key, owner=caller.user, reason=reason)


def _refusal(refused: Refused) -> HttpResponse:
    code = {400: _INVALID_REQUEST}.get(refused.status, _REFUSED)
    error = {"code": code, "message": refused.message}
    response = HttpResponse(
        json.dumps({"jsonrpc": "2.0", "id": None, "error": error}),
        status=refused.status,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
    if refused.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if refused.status == 405:
        response["Allow"] = "POST"
    if refused.wait:
        response["Retry-After"] = str(refused.wait)
    return response
