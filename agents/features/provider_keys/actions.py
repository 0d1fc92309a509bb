"""Set, remove and test keys of model providers. Keys are never returned."""

from __future__ import annotations

import re

from django.contrib.auth.models import PermissionsMixin
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from agents.features.provider_keys.models import ProviderKey
from agents.kernel.lazy_modules import lazy_modules
from agents.providers.addresses import origin_of
from agents.providers.base import ProviderError
from agents.providers.registry import MAKERS, base_url_of, key_of
from agents.providers.stored_keys import refresh_stored_keys
from agents.secret_text import SecretText
from agents.selectors.visible import Person
from agents.services.agent_definitions.settings_places import setting_names, settings_of
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound

with lazy_modules:
    from agents.providers import key_check  # only tests of keys need the HTTP client

MANAGE = "vel_provider_keys.manage_provider_keys"
SHORTEST, LONGEST = 8, 500
"""Characters of a key. Vel does not hide shorter ones in messages of servers."""
_KEY = re.compile(r"[!-~]*")
"""Other characters cannot be part of an HTTP header."""


def may_manage(user: Person) -> bool:
    return isinstance(user, PermissionsMixin) and user.is_active and user.has_perm(MANAGE)


def check_may_manage(user: Person) -> None:
    """Raise `NotAllowed` if `user` may not see and change the keys."""
    if not may_manage(user):
        raise NotAllowed(f"Keys of providers need the permission {MANAGE}.")


@sensitive_variables()
def set_key(provider: str, key: str, *, by: Person | None) -> ProviderKey:
    """Store a key in place of the present one, for the server of the present base URL.

    `by` is None for the account of this machine. Raises `NotAllowed`, `NotFound`, `InvalidRequest`.
    """
    _check(provider, by)
    key = key.strip()
    if not SHORTEST <= len(key) <= LONGEST or not _KEY.fullmatch(key):
        raise InvalidRequest(
            f"key: give {SHORTEST} to {LONGEST} letters, digits and signs without spaces."
        )
    origin = origin_of(base_url_of(provider, settings_of(provider)))
    with transaction.atomic():
        earlier = ProviderKey.objects.select_for_update().filter(provider=provider).first()
        row, _ = ProviderKey.objects.update_or_create(
            provider=provider,
            defaults={
                "origin": origin,
                "secret": SecretText.seal(key),
                "set_by_id": by.pk if by is not None else None,
                "set_at": timezone.now(),
            },
        )
        changes = {"origin": (earlier.origin if earlier else None, origin)}
        record("provider_key.set", row, by=by, changes=changes)
        transaction.on_commit(refresh_stored_keys)
    return row


@transaction.atomic
def remove_key(provider: str, *, by: Person | None) -> None:
    """Remove the stored key. Raises `NotAllowed`, and `NotFound` without a stored key."""
    _check(provider, by)
    row = ProviderKey.objects.select_for_update().filter(provider=provider).first()
    if row is None:
        raise NotFound(f"No key of {provider} is stored.")
    record("provider_key.removed", row, by=by)
    row.delete()
    transaction.on_commit(refresh_stored_keys)


@sensitive_variables()
def test_key(provider: str, *, by: Person | None) -> key_check.KeyCheck:
    """Ask the server of the present base URL whether it accepts the key in use.

    This blocks for some seconds at most: do not call it in a transaction. Raises `NotAllowed`,
    `NotFound`, and `Conflict` without a key that this server may get.
    """
    _check(provider, by)
    refresh_stored_keys()
    settings = settings_of(provider)
    try:
        key = key_of(provider, settings)
    except ProviderError as error:
        raise Conflict(f"Not tested: {error.message}.") from None
    base_url = base_url_of(provider, settings)
    if key is None:
        name = setting_names(provider)[0]
        raise Conflict(f"There is no key of {provider} to test: store one, or set {name}.")
    found = key_check.check_key(provider, base_url, key)
    with transaction.atomic():
        row = ProviderKey.objects.filter(provider=provider).first()
        target = f"{provider} at {origin_of(base_url)}"
        record("provider_key.tested", row or "provider_key", name=target, by=by, note=found.outcome)
    return found


def _check(provider: str, by: Person | None) -> None:
    if by is not None:
        check_may_manage(by)
    if provider not in MAKERS:
        raise NotFound(f"There is no provider {provider[:50]!r}; there are: {', '.join(MAKERS)}.")
