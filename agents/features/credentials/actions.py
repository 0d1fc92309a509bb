"""Store and remove tokens of other services. Tokens are never returned."""

from __future__ import annotations

from django.contrib.auth.models import PermissionsMixin
from django.db import transaction

from agents.features.credentials.models import Credential
from agents.secret_text import SecretText
from agents.selectors.visible import Person
from agents.services.audit import record
from agents.services.errors import NotAllowed, NotFound, ServiceError

SHARE = "vel_credentials.share_credential"
REMOVE = "vel_credentials.delete_credential"
CHECK_SECONDS = 10.0
"""How long a service may take to check a token."""


class CredentialRejected(ServiceError):
    """The service does not accept the token."""

    code = "credential_rejected"
    http_status = 401


class ServiceUnreachable(ServiceError):
    """The service cannot be reached now to check the token."""

    code = "service_unreachable"
    http_status = 503


def may_share(user: Person) -> bool:
    """Return whether `user` may store credentials for the runs of all people."""
    return isinstance(user, PermissionsMixin) and user.has_perm(SHARE)


@transaction.atomic
def remove_credential(provider: str, *, by: Person, shared: bool = False) -> None:
    """Remove the person's own credential, or with `shared` the shared one.

    Raises `NotFound`, and `NotAllowed` if the person may not share credentials.
    """
    if shared:
        must_share(by)
    rows = Credential.objects.select_for_update()
    row = rows.filter(provider=provider, owner=None if shared else by.pk).first()
    if row is None:
        raise NotFound(f"There is no {provider} credential to remove.")
    record("credential.removed", row, by=by)
    row.delete()


@transaction.atomic
def remove_any_credential(credential_id: str, *, by: Person) -> None:
    """Remove any person's credential, as an operator. Raises `NotAllowed` and `NotFound`."""
    if not (isinstance(by, PermissionsMixin) and by.has_perm(REMOVE)):
        raise NotAllowed(f"Removing credentials of other users requires the permission {REMOVE}.")
    row = Credential.objects.select_for_update().filter(pk=credential_id).first()
    if row is None:
        raise NotFound("There is no such credential.")
    if row.owner_id is None:
        must_share(by)
    record("credential.removed", row, by=by)
    row.delete()


@transaction.atomic
def store_credential(
    provider: str, secret: SecretText, account: str, *, by: Person, shared: bool
) -> Credential:
    """Store a token in place of the present one.

    `secret` is the sealed token, `account` the name of its account, for people. The caller has
    checked the token with its service and, with `shared`, the permission of `by`.
    """
    row, _ = Credential.objects.update_or_create(
        provider=provider,
        owner_id=None if shared else by.pk,
        defaults={"secret": secret, "account": account[:200], "created_by_id": by.pk},
    )
    record("credential.stored", row, by=by, changes={"account": (None, row.account)})
    return row


def must_share(by: Person) -> None:
    """Raise `NotAllowed` if `by` may not store shared credentials."""
    if not may_share(by):
        raise NotAllowed(f"A credential for all users requires the permission {SHARE}.")
