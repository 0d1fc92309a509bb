"""Functions of credentials for other features."""

from agents.features.credentials.actions import (
    CHECK_SECONDS,
    CredentialRejected,
    ServiceUnreachable,
    must_share,
    remove_credential,
    store_credential,
)
from agents.features.credentials.models import Credential
from agents.features.credentials.queries import credential_for, own_credentials

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
