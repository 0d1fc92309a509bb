"""Functions of credentials for other features."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet

from agents.features.credentials.actions import (
    CHECK_SECONDS,
    CredentialRejected,
    ServiceUnreachable,
    must_share,
    remove_credential,
    store_credential,
)
from agents.features.credentials.models import Credential
from agents.selectors.visible import Person

__all__ = [
    "CHECK_SECONDS",
    "Credential",
    "CredentialRejected",
    "ServiceUnreachable",
    "credential_for",
    "must_share",
    "own_credentials",
    "remove_credential",
    "store_credential",
]


def credential_for(owner_id: int, provider: str) -> Credential | None:
    """Return the person's own credential, else the shared one, else None."""
    return (
        Credential.objects.filter(Q(owner=owner_id) | Q(owner=None), provider=provider)
        .order_by(F("owner").asc(nulls_last=True))
        .first()
    )


def own_credentials(user: Person) -> QuerySet[Credential]:
    """Return the credentials that `user` stored for their own runs."""
    if not user.is_authenticated:
        return Credential.objects.none()
    return Credential.objects.filter(owner=user.pk)
