"""Requests with a stored credential. A rejected access token is renewed once."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.views.decorators.debug import sensitive_variables

from agents.features.google_workspace.client.errors import missing_scope, refusal
from agents.features.google_workspace.client.http import Answer, ask
from agents.features.google_workspace.client.keys import GoogleKey
from agents.features.google_workspace.client.tokens import AccessToken, access_token, forget


class GoogleSession:
    """The requests of one tool call. Requests that change data are not repeated.

    `name` identifies the present version of the stored credential, so that no other credential gets
    its token.
    """

    def __init__(self, key: GoogleKey, name: Hashable, *, seconds: float) -> None:
        self._key = key
        self._name = name
        self._until = time.monotonic() + seconds

    @sensitive_variables()
    def scopes(self) -> frozenset[str]:
        """Return the granted scopes. Raises `GoogleFailed`."""
        return access_token(self._key, self._name, self._until).scopes

    @property
    def subject(self) -> str:
        return self._key.subject

    @sensitive_variables()
    def ask(
        self,
        method: str,
        url: str,
        needs: tuple[str, ...],
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content: tuple[str, bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        writes: bool = False,
    ) -> dict[str, Any]:
        """Return the answer's object. Without one of the scopes in `needs`, no request is made.

        `body` is sent as JSON, `content` as (type, bytes). `writes`: the request may change data.
        Raises `GoogleFailed`.
        """
        given = [(name, value) for name, value in (query or {}).items() if value is not None]
        if given:
            url = f"{url}?{urlencode(given, doseq=True)}"
        sent = content
        if body is not None:
            sent = ("application/json", json.dumps(body).encode())
        for _ in range(2):
            token = access_token(self._key, self._name, self._until)
            if token.scopes and not token.scopes & set(needs):
                raise missing_scope(needs)
            answer = self._once(method, url, token, sent, headers or {}, writes)
            if answer.status != 401:
                break
            # The request was not carried out: the token has expired early.
            forget(self._name)
        if 200 <= answer.status < 300:
            return answer.json()
        told = answer.body.replace(token.text.encode(), b"(secret)")
        raise refusal(answer.status, told, answer.retry_after, needs, writes=writes)

    @sensitive_variables()
    def _once(
        self,
        method: str,
        url: str,
        token: AccessToken,
        content: tuple[str, bytes] | None,
        headers: Mapping[str, str],
        writes: bool,
    ) -> Answer:
        kind = {"Content-Type": content[0]} if content else {}
        return ask(
            method,
            url,
            headers={
                "Authorization": f"Bearer {token.text}",
                "Accept": "application/json",
                "User-Agent": "Vel",
                **kind,
                **headers,
            },
            body=content[1] if content else None,
            until=self._until,
            writes=writes,
        )
