"""Request a person's consent at Google: OAuth's authorisation code with PKCE (RFC 7636)."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable
from urllib.parse import urlencode

from django.views.decorators.debug import sensitive_variables

from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.tokens import ask_for_token
from agents.features.google_workspace.settings import GoogleSettings

SECONDS = 15.0


def can_ask() -> bool:
    """Return whether the operator has configured an OAuth client."""
    return bool(GoogleSettings.now().GOOGLE_CLIENT_ID and GoogleSettings.now().GOOGLE_CLIENT_SECRET)


def consent_address(scopes: Iterable[str], state: str, verifier: str, back: str) -> str:
    """Return the address of the consent page. Google redirects people to `back` afterwards."""
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
    """Return the grant for a code, as a JSON key (`keys`). Raises `GoogleFailed`."""
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
