"""`POST /hooks/{id}`: the only address that accepts requests without a session or a token.

The signature authenticates the request, so it is exempt from CSRF. Unknown ids, paused hooks, bad
signatures and old requests all get the same 404.
"""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST
from rest_framework.exceptions import ParseError

from agents.doors.rest.wire import check_json
from agents.events.append import dump
from agents.features.inbound_webhooks.deliveries import TooManyFailures, admit, deliver
from agents.services.disk_reserve import disk_full_refused
from agents.services.errors import Conflict, NoSpace, NotFound
from agents.services.request_rates import network_of

MOST_BYTES = 1_000_000
"""Limit of a body."""
SPACE_SECONDS = 60
"""Seconds after which a sender may try again when the disk is full."""
_JSON = ("application/json",)
_UNKNOWN = (
    "The address, the signature or the time of this request is invalid, or the webhook is paused."
)


@csrf_exempt
@transaction.non_atomic_requests
@never_cache
@require_POST
@sensitive_variables()
def receive(request: HttpRequest, hook_id: str) -> HttpResponse:
    """Answer 202 `{run, repeated}`. The run's result is never part of the answer."""
    body = _body(request)
    if body is None:
        return _problem(413, "too_large", f"A body has at most {MOST_BYTES:,} bytes.")
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        found = admit(hook_id, headers, body, network=network_of(request.META))
    except TooManyFailures as error:
        return _problem(429, "throttled", "Too many such requests.", wait=error.wait)
    if found is None:
        return _problem(404, "not_found", _UNKNOWN)
    hook, signed = found
    kind = request.content_type or ""
    if kind not in _JSON and not kind.endswith("+json") and kind != "text/plain":
        return _problem(415, "unsupported_media_type", "Send JSON, or text/plain in UTF-8.")
    try:
        content = _content(kind, body)
    except (ParseError, ValueError, RecursionError):
        return _problem(400, "invalid", "The body is not what its Content-Type says, in UTF-8.")
    if hook.signing == "slack" and _is_challenge(content):
        return _json(200, {"challenge": content["challenge"]})
    try:
        with disk_full_refused():
            done = deliver(hook, signed.key(body, content), body, content)
    except NotFound:  # it was deleted during the request
        return _problem(404, "not_found", _UNKNOWN)
    except Conflict as error:
        return _problem(409, error.code, error.message)
    except NoSpace as error:
        return _no_space(error)
    if done.wait:
        return _problem(429, "throttled", "Too many requests in this minute.", wait=done.wait)
    if isinstance(done.problem, NoSpace):
        return _no_space(done.problem)
    if done.problem is not None:
        # The owner sees the reason in the list of deliveries. The sender does not see it.
        return _problem(409, "not_started", "No run was started: its owner can see why.")
    return _json(202, {"run": done.run, "repeated": done.repeated})


def _body(request: HttpRequest) -> bytes | None:
    """Return the body, or None if it is too long or cannot be read."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES:
            return None
        body: bytes = request.read(MOST_BYTES + 1)
    except (ValueError, RequestDataTooBig, UnreadablePostError):
        return None
    return body if len(body) <= MOST_BYTES else None


def _content(kind: str, body: bytes) -> Any:
    text = body.decode("utf-8")
    if kind == "text/plain":
        return text
    content = json.loads(text, parse_constant=_refuse)
    check_json(content)
    return content


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_challenge(content: Any) -> bool:
    """Return whether Slack checks the address, which it does once with a signed request."""
    return (
        isinstance(content, dict)
        and content.get("type") == "url_verification"
        and isinstance(content.get("challenge"), str)
        and len(content["challenge"]) <= 200
    )


def _no_space(error: NoSpace) -> HttpResponse:
    """Answer 507: most senders repeat the request after a 5xx."""
    return _problem(507, error.code, error.message, wait=SPACE_SECONDS)


def _problem(status: int, code: str, detail: str, *, wait: int = 0) -> HttpResponse:
    data = {"type": "about:blank", "status": status, "code": code, "detail": detail}
    response = _json(status, data, "application/problem+json")
    if wait:
        response["Retry-After"] = str(wait)
    return response


def _json(status: int, data: object, media_type: str = "application/json") -> HttpResponse:
    return HttpResponse(dump(data).encode(), status=status, content_type=media_type)
