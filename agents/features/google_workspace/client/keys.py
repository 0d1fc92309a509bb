"""The two accepted kinds of credentials, in the format of Google's JSON files.

`service_account`: the key of a service account, which acts as a person of its domain (domain-wide
delegation). `authorized_user`: client_id, client_secret and refresh_token of an OAuth grant.

Other values of the file are ignored, above all its addresses: tokens are requested from the
operator's address only. Otherwise a pasted file could direct this server, and the secrets, to any
address.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from django.views.decorators.debug import sensitive_variables

from agents.features.google_workspace.client.access import KNOWN
from agents.features.google_workspace.client.errors import KeyProblem
from agents.kernel.lazy_modules import lazy_modules
from agents.secret_text import SecretText, SecretUnreadable

with lazy_modules:
    # Importing cryptography takes 35 ms.
    from agents.features.google_workspace.client import signing


MAX_KEY = 10_000
"""Limit of the pasted text in characters."""
ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+"
)
_TEXT = re.compile(r"[\x21-\x7e]{1,2000}")


@dataclass(frozen=True)
class GoogleKey:
    """A credential for requesting tokens. `scopes` are those to request, or those granted."""

    kind: Literal["service_account", "authorized_user"]
    identity: str
    """The service account's address, or the client's id."""
    subject: str
    """The person that a service account acts as."""
    secret: str = field(repr=False)
    """A private key (PEM), or the client's secret."""
    refresh_token: str = field(default="", repr=False)
    key_id: str = ""
    scopes: tuple[str, ...] = ()

    @sensitive_variables()
    def sealed(self) -> SecretText:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return SecretText.seal(json.dumps(fields))


@sensitive_variables()
def opened(secret: SecretText) -> GoogleKey:
    """Return the key stored by `GoogleKey.sealed`. Raises `SecretUnreadable`."""
    text = secret.reveal()
    try:
        fields = json.loads(text)
        return GoogleKey(**{**fields, "scopes": tuple(fields["scopes"])})
    except (ValueError, LookupError, TypeError):
        raise SecretUnreadable("It is no Google credential: enter it again.") from None


@sensitive_variables()
def read_key(text: str, *, subject: str = "", scopes: tuple[str, ...] = ()) -> GoogleKey:
    """Return the credential in a pasted JSON file. Raises `KeyProblem`.

    A service account needs `subject` and `scopes`; a grant has its own.
    """
    given = _object(text)
    kind = given.get("type")
    unknown = [scope for scope in scopes if scope not in KNOWN]
    if unknown:
        raise KeyProblem("access: Unknown value. Choose from the offered values.")
    if kind == "service_account":
        return _service_account(given, subject.strip(), scopes)
    if kind == "authorized_user":
        if subject.strip():
            raise KeyProblem(
                "subject: Leave this empty. A refresh token acts as the user who granted it."
            )
        return GoogleKey(
            "authorized_user",
            identity=_text(given, "client_id"),
            subject="",
            secret=_text(given, "client_secret"),
            refresh_token=_text(given, "refresh_token"),
        )
    raise KeyProblem(
        "key: Its type must be service_account (the JSON key that Google Cloud gives out) or "
        "authorized_user (client_id, client_secret and refresh_token)."
    )


@sensitive_variables()
def _object(text: str) -> dict[str, Any]:
    if len(text) > MAX_KEY:
        raise KeyProblem(f"key: It has over {MAX_KEY:,} characters, so it is not a key file.")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise KeyProblem("key: Paste the whole JSON file, from { to }.")
    return given


@sensitive_variables()
def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise KeyProblem(f"key: The JSON has no valid {name}.")
    return value


@sensitive_variables()
def _service_account(given: dict[str, Any], subject: str, scopes: tuple[str, ...]) -> GoogleKey:
    if not ADDRESS.fullmatch(subject):
        raise KeyProblem(
            "subject: Enter the e-mail address of the user that the service account acts as."
        )
    if not scopes:
        raise KeyProblem("access: Choose at least one permission of the service account.")
    pem = given.get("private_key")
    if not isinstance(pem, str):
        raise KeyProblem("key: The JSON has no valid private_key.")
    _check_private_key(pem)
    return GoogleKey(
        "service_account",
        identity=_text(given, "client_email"),
        subject=subject,
        secret=pem,
        key_id=_text(given, "private_key_id"),
        scopes=tuple(dict.fromkeys(scopes)),
    )


@sensitive_variables()
def _check_private_key(pem: str) -> None:
    if not signing.is_private_key(pem):
        raise KeyProblem("key: Its private_key is not an RSA key of at least 2048 bits.")
