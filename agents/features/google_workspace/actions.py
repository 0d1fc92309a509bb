"""Store a Google credential after Google has issued an access token for it."""

from __future__ import annotations

import time
from dataclasses import replace

from django.views.decorators.debug import sensitive_variables

from agents.features.credentials.public import (
    CHECK_SECONDS,
    Credential,
    CredentialRejected,
    ServiceUnreachable,
    must_share,
    store_credential,
)
from agents.features.google_workspace.client.access import PROFILE, READ_CALENDARS, SCOPES, short
from agents.features.google_workspace.client.calendar import Calendars
from agents.features.google_workspace.client.errors import GoogleFailed, KeyProblem
from agents.features.google_workspace.client.gmail import Mailbox
from agents.features.google_workspace.client.keys import GoogleKey, read_key
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.client.tokens import REJECTED, forget, granted_key, new_token
from agents.selectors.visible import Person
from agents.services.errors import InvalidRequest

PROVIDER = "google"


@sensitive_variables("key")
def save_google_key(
    key: str,
    *,
    subject: str = "",
    access: tuple[str, ...] = (),
    by: Person,
    shared: bool = False,
) -> Credential:
    """Verify a pasted JSON key with Google, and store it in place of the present one.

    `subject` and `access` (names of `access.OFFERED`) are for a service account. The key is for the
    runs of `by`, or with `shared` for all people without their own. Raises `NotAllowed` if `by` may
    not share credentials, `InvalidRequest` for an invalid key, `CredentialRejected` and
    `ServiceUnreachable`; the stored key does not change then.
    """
    if shared:
        must_share(by)
    unknown = [name for name in access if name not in SCOPES]
    if unknown:
        raise InvalidRequest(
            f"access: Expected one or more of {', '.join(SCOPES)}.", code="invalid_access"
        )
    try:
        read = read_key(key, subject=subject, scopes=tuple(SCOPES[name] for name in access))
    except KeyProblem as problem:
        raise InvalidRequest(str(problem), code="invalid_key") from None
    granted = _granted(read)
    if not granted & set(SCOPES.values()) and not short(granted):
        raise InvalidRequest(
            "key: Its scopes are not used by Vel. Grant one or more of "
            f"{', '.join(SCOPES.values())} and paste the new refresh token.",
            code="missing_scope",
        )
    account = _account(read, granted)
    kept = replace(read, scopes=tuple(sorted(granted)))
    return store_credential(PROVIDER, kept.sealed(), account, by=by, shared=shared)


@sensitive_variables()
def save_google_consent(code: str, verifier: str, back: str, *, by: Person) -> Credential:
    """Store the grant for a `code` that Google gave `by`. Raises as `save_google_key`.

    `verifier` and `back` are those of `consent_address`.
    """
    try:
        key = granted_key(code, verifier, back)
    except GoogleFailed as failure:
        raise _refused(failure) from None
    return save_google_key(key, by=by)


@sensitive_variables("key")
def _granted(key: GoogleKey) -> frozenset[str]:
    try:
        return new_token(key, time.monotonic() + CHECK_SECONDS).scopes
    except GoogleFailed as failure:
        raise _refused(failure) from None


@sensitive_variables("key")
def _account(key: GoogleKey, granted: frozenset[str]) -> str:
    """Return the account's address, if the scopes allow the request, and the scopes."""
    name = object()  # not the key of a row: the token is for this check only
    session = GoogleSession(key, name, seconds=CHECK_SECONDS)
    try:
        if granted & set(PROFILE):
            owner = Mailbox(session).owner()
        elif granted & set(READ_CALENDARS):
            owner = Calendars(session).owner()
        else:
            owner = key.subject or "a Google account"
    except GoogleFailed as failure:
        raise _refused(failure) from None
    finally:
        forget(name)
    return f"{owner} ({short(granted)})"


def _refused(failure: GoogleFailed) -> CredentialRejected | ServiceUnreachable | InvalidRequest:
    if failure.code in REJECTED:
        return CredentialRejected(f"key: {failure}")
    if failure.code in ("invalid_scope", "missing_scope", "service_disabled", "access_denied"):
        return InvalidRequest(f"key: {failure}", code=failure.code)
    return ServiceUnreachable(f"The key was not stored. {failure}")
