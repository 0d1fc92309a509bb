"""Save and remove notification targets."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from django.db import transaction

from agents.features.notifications.messages import check_address
from agents.features.notifications.models import NotificationTarget, TargetKind
from agents.features.notifications.webhook import new_secret, parse_webhook_url
from agents.secret_text import HIDDEN
from agents.services.audit import changes_between, record
from agents.services.errors import InvalidRequest, NotFound
from agents.services.outside_address import LONGEST_URL


def check_target(kind: str, address: str) -> None:
    """Raise `InvalidRequest` if messages cannot be sent to the address."""
    if kind == TargetKind.WEBHOOK:
        parse_webhook_url(address)
    elif kind == TargetKind.EMAIL:
        check_address(address)
    else:
        raise InvalidRequest(f"Choose a kind: {', '.join(TargetKind.values)}.")
    if len(address) > LONGEST_URL:
        raise InvalidRequest(f"An address has at most {LONGEST_URL} characters.")


@transaction.atomic
def save_target(target: NotificationTarget) -> str | None:
    """Store a target. Return its secret if a new one was made, to be shown this once.

    A webhook with a changed URL gets a new secret, so that the old receiver cannot sign messages
    for the new one.
    """
    check_target(target.kind, target.address)
    before = NotificationTarget.objects.select_for_update(no_key=True).filter(pk=target.pk).first()
    created_secret: str | None = None
    if target.kind != TargetKind.WEBHOOK:
        target.secret = ""
    elif before is None or not before.secret or before.address != target.address:
        target.secret = created_secret = new_secret()
    else:
        target.secret = before.secret
    target.save()
    changes = changes_between(None if before is None else _told(before), _told(target))
    if created_secret is not None:
        changes["secret"] = (None, HIDDEN)
    action = "notification_target.created" if before is None else "notification_target.changed"
    record(action, target, name=_name(target), changes=changes)
    return created_secret


@transaction.atomic
def renew_secret(target_id: str) -> str:
    """Give a webhook a new secret and return it. The old one is not used again."""
    target = NotificationTarget.objects.select_for_update(no_key=True).filter(pk=target_id).first()
    if target is None:
        raise NotFound("There is no such target.")
    if target.kind != TargetKind.WEBHOOK:
        raise InvalidRequest("Only webhooks have a secret.")
    target.secret = new_secret()
    target.save(update_fields=["secret"])
    record("notification_target.secret_renewed", target, name=_name(target))
    return target.secret


@transaction.atomic
def remove_target(target_id: str) -> None:
    """Remove a target and the record of its messages. Raises `NotFound`."""
    # Locked first, so that a message that is being written is removed with the target.
    target = NotificationTarget.objects.select_for_update().filter(pk=target_id).first()
    if target is None:
        raise NotFound("There is no such target.")
    record("notification_target.removed", target, name=_name(target))
    target.delete()


def _name(target: NotificationTarget) -> str:
    """Return a name without a webhook's path, which can contain a secret."""
    if target.kind != TargetKind.WEBHOOK:
        return f"{target.kind} {target.address}"
    return f"{target.kind} {urlsplit(target.address).hostname or ''}"


def _told(target: NotificationTarget) -> dict[str, object]:
    address = hashlib.sha256(target.address.encode()).hexdigest()[:16]
    return {
        "address": _name(target),
        "address_sha256": address,
        "agent": target.agent.slug if target.agent else None,
        "is_active": target.is_active,
    }
