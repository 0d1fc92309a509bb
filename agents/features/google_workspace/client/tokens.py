"""Access tokens, kept in this process until they expire, and the consent of people (OAuth)."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.views.decorators.debug import sensitive_variables

from agents.features.google_workspace.client.errors import GoogleFailed, refusal
from agents.features.google_workspace.client.http import Answer, ask
from agents.features.google_workspace.client.keys import GoogleKey
from agents.features.google_workspace.settings import GoogleSettings
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Importing cryptography takes 35 ms.
    from agents.features.google_workspace.client import signing


AUDIENCE = "https://oauth2.googleapis.com/token"
"""The audience of an assertion, also if another server forwards it."""
JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EARLY = 60.0
"""Seconds before its expiry at which a token is no longer used."""
MOST_KEPT = 500
REJECTED = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client", "invalid_credentials"}
)

_SAID = {
    "invalid_grant": "Google does not accept the credential any more: it was revoked, has expired, "
    "or the account is closed. Connect Google again.",
    "invalid_client": "Google does not know the OAuth client, or its secret: connect Google again.",
    "unauthorized_client": "Google does not let this service account act as that person with these "
    "scopes: an administrator of the domain must allow its client id exactly them under "
    "domain-wide delegation.",
    "invalid_scope": "Google does not know one of the scopes: connect Google again.",
    "access_denied": "An administrator of the Google domain does not allow this client.",
    "admin_policy_enforced": "An administrator of the Google domain does not allow this client.",
}


@dataclass(frozen=True)
class AccessToken:
    """An access token. `expires` is by `time.monotonic`; `scopes` can be empty if unknown."""

    text: str = field(repr=False)
    expires: float
    scopes: frozenset[str]


_kept: OrderedDict[Hashable, AccessToken] = OrderedDict()
_lock = threading.Lock()


@sensitive_variables()
def access_token(key: GoogleKey, name: Hashable, until: float) -> AccessToken:
    """Return the token kept as `name`, or request a new one. Raises `GoogleFailed`.

    `until` is the deadline of the request, by `time.monotonic`.
    """
    with _lock:
        found = _kept.get(name)
        if found is not None and found.expires > time.monotonic():
            _kept.move_to_end(name)
            return found
    made = new_token(key, until)
    with _lock:
        _kept[name] = made
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return made


def forget(name: Hashable) -> None:
    """Remove a token that Google rejects or that belongs to a replaced credential."""
    with _lock:
        _kept.pop(name, None)


@sensitive_variables()
def new_token(key: GoogleKey, until: float) -> AccessToken:
    """Request a token. Raises `GoogleFailed`, with a code of `REJECTED` for a bad credential."""
    if key.kind == "service_account":
        form = {"grant_type": JWT_GRANT, "assertion": _assertion(key)}
    else:
        form = {
            "grant_type": "refresh_token",
            "client_id": key.identity,
            "client_secret": key.secret,
            "refresh_token": key.refresh_token,
        }
    return read_token(ask_for_token(form, until), key.scopes)


@sensitive_variables()
def ask_for_token(form: dict[str, str], until: float) -> dict[str, Any]:
    """Return the token endpoint's answer to a form. Raises `GoogleFailed`."""
    answer = ask(
        "POST",
        GoogleSettings.now().GOOGLE_TOKEN_URL,
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
        body=urlencode(form).encode(),
        until=until,
    )
    if answer.status != 200:
        raise _refused(answer)
    return answer.json()


@sensitive_variables()
def read_token(said: dict[str, Any], asked: tuple[str, ...] = ()) -> AccessToken:
    """Return the token of an answer. Raises `GoogleFailed` if there is none.

    `asked` are the requested scopes, which count if the answer names none.
    """
    text, lives = said.get("access_token"), said.get("expires_in", 3600)
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or not text:
        raise GoogleFailed("Google's answer contains no access token.", "malformed")
    seconds = float(lives) if isinstance(lives, int | float) else 0.0
    granted = said.get("scope")
    scopes = granted.split() if isinstance(granted, str) else asked
    return AccessToken(text, time.monotonic() + max(0.0, seconds - EARLY), frozenset(scopes))


def _refused(answer: Answer) -> GoogleFailed:
    """Return the error for an OAuth error code (RFC 6749, 5.2).

    OAuth's description is ignored, since it can quote the request.
    """
    try:
        code = json.loads(answer.body)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        code = None
    if answer.status in (400, 401, 403) and isinstance(code, str):
        shown = code[:50] if code.isidentifier() else "no reason"
        text = _SAID.get(code, f"Google gives no access token ({shown}): connect Google again.")
        return GoogleFailed(text, code if code in _SAID else "token_refused", status=answer.status)
    return refusal(answer.status, b"", answer.retry_after, (), writes=False)


@sensitive_variables()
def _assertion(key: GoogleKey) -> str:
    """Return a JWT signed with RS256 (RFC 7523), valid for ten minutes."""
    now = int(time.time())
    claims = {
        "iss": key.identity,
        "sub": key.subject,
        "scope": " ".join(key.scopes),
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + 600,
    }
    head = {"alg": "RS256", "typ": "JWT", "kid": key.key_id}
    signed = b".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
    return (signed + b"." + _base64(signing.signature(key.secret, signed))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


SECONDS = 15.0


def can_ask() -> bool:
    """Return whether the operator has configured an OAuth client."""
    return bool(GoogleSettings.now().GOOGLE_CLIENT_ID and GoogleSettings.now().GOOGLE_CLIENT_SECRET)


def consent_address(scopes: Iterable[str], state: str, verifier: str, back: str) -> str:
    """Return the address of the consent page. Google redirects people to `back` afterwards.

    `state` and `verifier` (of PKCE) are secrets of the session, which the return must have.
    """
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    asked = {
        "client_id": GoogleSettings.now().GOOGLE_CLIENT_ID,
        "redirect_uri": back,
        "response_type": "code",
        "scope": " ".join(scopes),
        "state": state,
        "code_challenge": challenge.rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        # For a refresh token, also if one was granted before.
        "access_type": "offline",
        "prompt": "consent",
    }
    return f"{GoogleSettings.now().GOOGLE_AUTH_URL}?{urlencode(asked)}"


@sensitive_variables()
def granted_key(code: str, verifier: str, back: str) -> str:
    """Return the grant for a code, as a JSON key (`keys`). Raises `GoogleFailed`.

    `verifier` and `back` are those of `consent_address`.
    """
    client = {
        "client_id": GoogleSettings.now().GOOGLE_CLIENT_ID,
        "client_secret": GoogleSettings.now().GOOGLE_CLIENT_SECRET,
    }
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
    said = ask_for_token({**form, **client, "code_verifier": verifier}, time.monotonic() + SECONDS)
    refresh = said.get("refresh_token")
    if not isinstance(refresh, str):
        raise GoogleFailed(
            "Google gave no refresh token: remove this application from your Google account's "
            "connections, and connect again.",
            "token_refused",
        )
    return json.dumps({"type": "authorized_user", **client, "refresh_token": refresh})
