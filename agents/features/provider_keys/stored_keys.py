"""The stored keys, for model calls."""

from __future__ import annotations

from django.views.decorators.debug import sensitive_variables

from agents.features.provider_keys.models import ProviderKey
from agents.providers.stored_keys import StoredKey
from agents.secret_text import SecretUnreadable


@sensitive_variables()
def read_keys() -> list[StoredKey]:
    """Return the keys. One that cannot be decrypted has a `problem` instead."""
    found = []
    for row in ProviderKey.objects.all():
        try:
            found.append(StoredKey(row.provider, row.origin, row.secret.reveal()))
        except SecretUnreadable as error:
            found.append(StoredKey(row.provider, row.origin, problem=str(error)))
    return found


SOURCES = [read_keys]
