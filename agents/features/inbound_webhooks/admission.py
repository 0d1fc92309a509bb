"""Admit requests from outside. All refused requests get the same answer in about the same time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from agents.features.inbound_webhooks.models import (
    InboundWebhook,
    InboundWebhookRefusal,
    InboundWebhookSigning,
)
from agents.features.inbound_webhooks.signatures import (
    Signed,
    is_genuine,
    key_of,
    new_secret,
    read_signed,
)
from agents.secret_text import SecretText, SecretUnreadable
from agents.services.request_rates import wait_for

FAILURES_A_MINUTE = 60
"""Refused requests of one address in a minute. Further ones get 429 and are not counted."""
KEPT_DAYS = 30


class TooManyFailures(Exception):
    """Too many refused requests from an address. `wait` is in seconds."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"wait {wait} s")
        self.wait = wait


def admit(
    hook_id: str, headers: Mapping[str, str], body: bytes, *, network: str
) -> tuple[InboundWebhook, Signed] | None:
    """Return the hook and the signed request, or None if it is unknown, paused or badly signed.

    `headers` have lower-case names. The reason for None is counted, but never sent. Raises
    `TooManyFailures`, for known and unknown ids.
    """
    found = InboundWebhook.objects.select_related("owner", "agent").filter(pk=hook_id).first()
    signing = found.signing if found is not None else InboundWebhookSigning.STANDARD
    signed = read_signed(signing, headers, body)
    # The same work for an unknown id: two secrets are decrypted and two HMACs are computed.
    genuine = is_genuine(signed, body, _keys(found), time.time())
    if found is not None and genuine and found.is_enabled and signed is not None:
        return found, signed
    if wait := wait_for(f"hooks:{network}", FAILURES_A_MINUTE):
        raise TooManyFailures(wait)
    if found is None:
        count_refusal("", "unknown")
    else:
        count_refusal(found.pk, "paused" if genuine else "signature")
    return None


def count_refusal(subject: str, reason: str) -> None:
    """Count one more refused request of today."""
    now = timezone.now()
    row = InboundWebhookRefusal.objects.filter(subject=subject, day=now.date(), reason=reason)
    if row.update(count=F("count") + 1, last_at=now):
        return
    InboundWebhookRefusal.objects.filter(day__lt=now.date() - timedelta(days=KEPT_DAYS)).delete()
    try:
        with transaction.atomic():
            InboundWebhookRefusal.objects.create(
                subject=subject, day=now.date(), reason=reason, count=1, last_at=now
            )
    except IntegrityError:  # another process was first
        row.update(count=F("count") + 1, last_at=now)


@sensitive_variables()
def _keys(hook: InboundWebhook | None) -> tuple[bytes, bytes]:
    """Return two keys, always. Random keys replace missing ones."""
    nobody = _nobodys_secret()
    if hook is None:
        return _key(InboundWebhookSigning.STANDARD, nobody), _key(
            InboundWebhookSigning.STANDARD, nobody
        )
    has_former = (
        hook.former_secret and hook.former_until is not None and hook.former_until > timezone.now()
    )
    present = _key(hook.signing, hook.secret)
    if has_former:
        return present, _key(hook.signing, hook.former_secret)
    return present, _key(InboundWebhookSigning.STANDARD, nobody)


@sensitive_variables()
def _key(signing: str, secret: SecretText) -> bytes:
    try:
        return key_of(signing, secret.reveal())
    except (SecretUnreadable, ValueError):
        # No signature matches a random key, so the hook is closed until its secret is rotated.
        return key_of(InboundWebhookSigning.STANDARD, new_secret())


@lru_cache(maxsize=1)
@sensitive_variables()
def _nobodys_secret() -> SecretText:
    return SecretText.seal(new_secret())
