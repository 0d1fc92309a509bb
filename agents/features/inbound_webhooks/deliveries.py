"""Admit requests from outside, and start a run for each, once for any number of deliveries.

All refused requests get the same answer in about the same time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from agents.features.inbound_webhooks.actions import locked_inbound_webhook
from agents.features.inbound_webhooks.models import (
    DeliveryOutcome,
    InboundWebhook,
    InboundWebhookDelivery,
    InboundWebhookRefusal,
    InboundWebhookSigning,
)
from agents.features.inbound_webhooks.signatures import (
    TOLERANCE,
    Signed,
    is_genuine,
    key_of,
    new_secret,
    read_signed,
)
from agents.models import Run, Thread, ThreadPolicy
from agents.secret_text import SecretText, SecretUnreadable
from agents.selectors.visible import threads_for
from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
from agents.services.request_rates import wait_for
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.trigger_rights import check_can_start
from agents.services.runs.trigger_template import BadTemplate, clock_values, filled_from_outside

KEPT_DELIVERIES = 10_000
"""Deliveries that are kept for one hook. Repeated requests are recognized only by kept ones."""
_PRUNE_EVERY = 100


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a delivery. `run` is None if none was started (see `problem`) or it was erased.

    `repeated`: the request was received before, and this is its result of then. `wait`: the seconds
    after which the sender may try again, if the rate is exceeded.
    """

    run: str | None
    repeated: bool = False
    problem: ServiceError | None = None
    wait: int = 0


@dataclass(frozen=True, slots=True)
class _Message:
    """The message for the agent, made of a hook's name and template."""

    made_of: tuple[str, str]
    text: str
    problem: str = ""


def deliver(hook: InboundWebhook, key: str, body: bytes, content: Any) -> Delivered:
    """Start a run with `content` (JSON or a text), or find the run that was started before.

    `wait` is above 0 if the hook's rate for this minute is exceeded; nothing is stored then. `key`
    identifies repeated requests. Raises `Conflict` for a `webhook-id` that was used with another
    body, and `NotFound` if the hook has just been deleted.
    """
    digest = hashlib.sha256(body).hexdigest()
    known = InboundWebhookDelivery.objects.filter(
        hook=hook, key=key, outcome=DeliveryOutcome.STARTED
    )
    if known.exists():
        return _deliver(hook.pk, key, digest, len(body), content, None)
    if wait := wait_for(f"hook:{hook.pk}", hook.per_minute):
        return Delivered(None, wait=wait)
    # Before the lock, so that a large request does not block other writers.
    return _deliver(hook.pk, key, digest, len(body), content, _message(hook, content))


@transaction.atomic
def _deliver(
    hook_id: str, key: str, digest: str, size: int, content: Any, message: _Message | None
) -> Delivered:
    # Locked: of two requests with one key, the second finds the row of the first.
    hook = locked_inbound_webhook(hook_id)
    row = InboundWebhookDelivery.objects.filter(hook=hook, key=key).first()
    # Stripe's retry of an event can have another body: it counts the pending deliveries.
    strict = hook.signing == InboundWebhookSigning.STANDARD
    if strict and row is not None and row.body_sha256 != digest:
        raise Conflict("This id was already used with another body.", code="delivery_mismatch")
    if row is not None and row.outcome == DeliveryOutcome.STARTED:
        InboundWebhookDelivery.objects.filter(pk=row.pk).update(repeats=F("repeats") + 1)
        return Delivered(row.run_id, repeated=True)
    if row is None:
        row = InboundWebhookDelivery(hook=hook, key=key, body_sha256=digest, size=size)
    else:
        row.repeats += 1
    try:
        row.run = _start(hook, content, message)
    except ServiceError as error:
        row.outcome, row.reason = DeliveryOutcome.REFUSED, error.code[:50]
        row.detail = error.message
        row.save()
        return Delivered(None, problem=error)
    row.outcome, row.reason, row.detail = DeliveryOutcome.STARTED, "", ""
    row.save()
    if row.pk % _PRUNE_EVERY == 0:
        _prune(hook)
    return Delivered(row.run_id)


def _message(hook: InboundWebhook, content: Any) -> _Message:
    values = {**clock_values(timezone.now()), "hook": hook.name}
    try:
        text = filled_from_outside(hook.message, values, content, hook=hook.name)
    except BadTemplate as problem:
        return _Message((hook.name, hook.message), "", str(problem))
    return _Message((hook.name, hook.message), text)


def _start(hook: InboundWebhook, content: Any, message: _Message | None) -> Run:
    if not hook.is_enabled:
        raise NotFound("It was paused during the request.", code="paused")
    check_can_start(hook)
    if message is None or message.made_of != (hook.name, hook.message):
        message = _message(hook, content)  # the hook was changed just now
    if message.problem:
        raise InvalidRequest(message.problem, code="message_too_long")
    goes_on = hook.thread_policy == ThreadPolicy.ONE
    mine = threads_for(hook.owner).filter(pk=hook.thread_id, agent=hook.agent_id)
    thread = hook.thread_id if goes_on and mine.exists() else None
    request = RunRequest(
        agent=hook.agent.slug,
        message=message.text,
        thread=thread,
        queue=goes_on,
        source="hook",
        trigger=hook.pk,
    )
    run = create_run(request, owner=hook.owner).run
    if thread is None:
        Thread.objects.filter(pk=run.thread_id).update(title=hook.name)
    if goes_on and thread is None:
        InboundWebhook.objects.filter(pk=hook.pk).update(thread=run.thread_id)
    return run


def _prune(hook: InboundWebhook) -> None:
    """Delete old deliveries, except those that could still be repeated in time."""
    newest_first = hook.deliveries.order_by("-id").values_list("pk", flat=True)
    oldest_kept = newest_first[KEPT_DELIVERIES - 1 : KEPT_DELIVERIES].first()
    in_time = timezone.now() - timedelta(seconds=4 * TOLERANCE)
    hook.deliveries.filter(pk__lt=oldest_kept or 0, created_at__lt=in_time).delete()


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

    `headers` have lower-case names. `network` identifies the sender for the limit of refusals. The
    reason for None is counted, but never sent. Raises `TooManyFailures`, for known and unknown ids.
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
    """Count one more refused request of today.

    `subject` is a hook's id, or empty for unknown ids.
    """
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
