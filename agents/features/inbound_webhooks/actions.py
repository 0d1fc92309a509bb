"""Create and change webhooks that start runs. A secret is shown only when it is created."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from agents.features.budgets.public import Budget, Period, delete_budget, save_budget
from agents.features.inbound_webhooks.models import InboundWebhook, InboundWebhookSigning
from agents.features.inbound_webhooks.signatures import key_of, new_secret
from agents.models import ThreadPolicy
from agents.secret_text import SecretText
from agents.services.audit import Change, changes_between, fields_of, record
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.trigger_rights import (
    check_may_define,
    check_may_stop,
    check_message,
    check_trigger,
)
from agents.services.runs.trigger_template import BadTemplate, check_template

MOST_HOOKS = 50
"""Limit for one person."""
MOST_PER_MINUTE = 600
LONGEST_OVERLAP = 7 * 24 * 3_600
"""Seconds for which the former secret may stay valid."""
USUAL_OVERLAP = 24 * 3_600

FIELDS = ("name", "agent_id", "message", "signing", "thread_policy", "per_minute", "is_enabled")


@dataclass(frozen=True, slots=True)
class DayBudget:
    """Daily limits for all runs of a hook together. None: no limit."""

    max_tokens: int | None = None
    max_cost: Decimal | None = None

    def __bool__(self) -> bool:
        return self.max_tokens is not None or self.max_cost is not None


@sensitive_variables("secret", "plain")
@transaction.atomic
def create_inbound_webhook(
    hook: InboundWebhook, *, by: AbstractBaseUser, budget: DayBudget | None = None, secret: str = ""
) -> str:
    """Store a new hook and return its secret, which cannot be read again.

    `secret` is given by the sender, as with Slack and Stripe; if it is empty, one is generated.
    Raises `InvalidRequest`, `NotAllowed`, `NotFound` (the agent) and `Conflict` (too many hooks).
    """
    check_may_define(hook, by)
    check_inbound_webhook(hook)
    get_user_model().objects.select_for_update().get(pk=hook.owner_id)
    if InboundWebhook.objects.filter(owner=hook.owner_id).count() >= MOST_HOOKS:
        raise Conflict(f"The limit of {MOST_HOOKS} webhooks is reached. Delete one first.")
    plain = _checked_secret(hook.signing, secret)
    hook.secret, hook.former_secret = SecretText.seal(plain), SecretText("")
    hook.save(force_insert=True)
    changes = changes_between(None, fields_of(hook, *FIELDS))
    if budget:
        changes |= _set_budget(hook, budget)
    record("hook.created", hook, name=hook.name, by=by, changes=changes)
    return plain


@transaction.atomic
def change_inbound_webhook(
    hook: InboundWebhook, *, by: AbstractBaseUser, budget: DayBudget | None = None
) -> InboundWebhook:
    """Change fields of a hook, but not its owner, signing or secret. `budget` None: no change.

    Raises `InvalidRequest`, `NotAllowed`, `NotFound`.
    """
    check_may_define(hook, by)
    check_inbound_webhook(hook)
    stored = locked_inbound_webhook(hook.pk)
    if (stored.owner_id, stored.signing) != (hook.owner_id, hook.signing):
        raise InvalidRequest(
            "The owner and the signing of a webhook cannot change. Create another webhook."
        )
    if stored.agent_id != hook.agent_id:
        hook.thread_id = None
    hook.save(update_fields=[*(f.removesuffix("_id") for f in FIELDS), "thread", "updated_at"])
    if stored.name != hook.name:
        budgets_of(hook).update(trigger_name=_words(hook))
    changes = changes_between(fields_of(stored, *FIELDS), fields_of(hook, *FIELDS))
    if budget is not None:
        changes |= _set_budget(hook, budget)
    if changes:
        record("hook.changed", hook, name=hook.name, by=by, changes=changes)
    return hook


@sensitive_variables("secret", "plain")
@transaction.atomic
def rotate_secret(
    hook_id: str, *, by: AbstractBaseUser, secret: str = "", overlap: int = USUAL_OVERLAP
) -> str:
    """Set a new secret and return it. The former one stays valid for `overlap` seconds.

    With 0 the former one ends immediately, and an even older one always does. Raises the errors of
    `create_inbound_webhook`.
    """
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise InvalidRequest(f"overlap: 0 to {LONGEST_OVERLAP:,} seconds.")
    hook = locked_inbound_webhook(hook_id)
    check_may_define(hook, by)
    plain = _checked_secret(hook.signing, secret)
    hook.former_secret = hook.secret if overlap else SecretText("")
    hook.former_until = timezone.now() + timedelta(seconds=overlap) if overlap else None
    hook.secret = SecretText.seal(plain)
    hook.save(update_fields=["secret", "former_secret", "former_until", "updated_at"])
    changes: dict[str, Change] = {"former_until": (None, hook.former_until)}
    record("hook.rotated", hook, name=hook.name, by=by, changes=changes)
    return plain


@transaction.atomic
def enable_inbound_webhook(hook_id: str, enabled: bool, *, by: AbstractBaseUser) -> InboundWebhook:
    """Enable or disable a hook. Requests to a disabled hook get a 404.

    Raises `NotAllowed` and `NotFound`.
    """
    hook = locked_inbound_webhook(hook_id)
    check_may_stop(hook, by)
    if hook.is_enabled != enabled:
        hook.is_enabled = enabled
        hook.save(update_fields=["is_enabled", "updated_at"])
        changes = {"is_enabled": (not enabled, enabled)}
        record("hook.changed", hook, name=hook.name, by=by, changes=changes)
    return hook


@transaction.atomic
def delete_inbound_webhook(hook_id: str, *, by: AbstractBaseUser) -> None:
    """Delete a hook, its budget and the record of its deliveries; its runs stay.

    Raises `NotAllowed` and `NotFound`.
    """
    hook = locked_inbound_webhook(hook_id)
    check_may_stop(hook, by)
    for budget in budgets_of(hook):
        delete_budget(budget)
    changes = {name: (value, None) for name, value in fields_of(hook, *FIELDS).items()}
    record("hook.deleted", hook, name=hook.name, by=by, changes=changes)
    hook.delete()


def delete_all() -> None:
    """Delete every webhook and its budget, so that runs that wait for the budget continue."""
    for hook in InboundWebhook.objects.order_by("pk"):
        with transaction.atomic():
            for budget in budgets_of(hook):
                delete_budget(budget)
            hook.delete()


def check_inbound_webhook(hook: InboundWebhook) -> None:
    """Raise `InvalidRequest` with the name of the invalid field, or `NotFound`."""
    check_trigger(hook)
    check_message(hook.message)
    if (
        hook.signing not in InboundWebhookSigning.values
        or hook.thread_policy not in ThreadPolicy.values
    ):
        raise InvalidRequest("Choose one of the offered values.")
    if not 1 <= hook.per_minute <= MOST_PER_MINUTE:
        raise InvalidRequest(f"per_minute: 1 to {MOST_PER_MINUTE}.")
    try:
        check_template(hook.message, "hook", body=True)
    except BadTemplate as error:
        raise InvalidRequest(str(error)) from None


def budgets_of(hook: InboundWebhook) -> QuerySet[Budget]:
    return Budget.objects.filter(trigger=hook.pk)


def budget_of(hook: InboundWebhook) -> Budget | None:
    """Return the daily budget of the hook's runs, or None without a limit."""
    return budgets_of(hook).filter(period=Period.DAY).first()


def locked_inbound_webhook(hook_id: str) -> InboundWebhook:
    """Lock and return a hook. Raises `NotFound`."""
    rows = InboundWebhook.objects.select_for_update(no_key=True, of=("self",))
    found = rows.select_related("owner", "agent", "thread").filter(pk=hook_id).first()
    if found is None:
        raise NotFound("There is no such webhook.")
    return found


@sensitive_variables()
def _checked_secret(signing: str, secret: str) -> str:
    plain = secret or new_secret()
    try:
        key_of(signing, plain)
    except ValueError as error:
        raise InvalidRequest(f"secret: {error}") from None
    return plain


def _words(hook: InboundWebhook) -> str:
    return f"the webhook {hook}"


def _set_budget(hook: InboundWebhook, wanted: DayBudget) -> dict[str, Change]:
    """Set the budget; return the change for the audit entry. Budgets have own entries too."""
    if (wanted.max_tokens or 0) < 0 or (wanted.max_cost or 0) < 0:
        raise InvalidRequest("A limit cannot be negative.")
    row = budget_of(hook)
    before = (row.max_tokens, row.max_cost) if row else (None, None)
    if row is not None and not wanted:
        delete_budget(row)
    elif wanted:
        row = row or Budget(trigger=hook.pk, trigger_name=_words(hook), period=Period.DAY)
        row.max_tokens, row.max_cost = wanted.max_tokens, wanted.max_cost
        save_budget(row)
    return {
        "max_tokens_a_day": (before[0], wanted.max_tokens),
        "max_cost_a_day": (before[1], wanted.max_cost),
    }
