"""Storing and removing tokens of other services. What is typed is never given back."""

from __future__ import annotations

import re

from django.contrib.auth.models import PermissionsMixin
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from agents.models import Credential, CredentialProvider
from agents.secret_text import SecretText
from agents.selectors.visible import Person
from agents.services.audit import record
from agents.services.errors import InvalidRequest, NotAllowed, NotFound, ServiceError
from agents.slack.client import REJECTED, SCOPES, SlackAccount, SlackClient, SlackFailed

SHARE = "agents.share_credential"
CHECK_SECONDS = 10.0
_SLACK_TOKEN = re.compile(r"xoxb-[0-9A-Za-z-]{10,250}")


class CredentialRejected(ServiceError):
    """The service does not accept the token."""

    code = "credential_rejected"
    http_status = 401


class ServiceUnreachable(ServiceError):
    """The service that would have to check it cannot be asked now."""

    code = "service_unreachable"
    http_status = 503


def may_share(user: Person) -> bool:
    """Whether `user` may store credentials that everybody's runs use."""
    return isinstance(user, PermissionsMixin) and user.has_perm(SHARE)


@sensitive_variables("token")
def save_slack_token(token: str, *, by: Person, shared: bool = False) -> Credential:
    """Ask Slack whose bot token it is, and store it in place of the one that is there.

    For the runs of `by`, or with `shared` for all who have none of their own. Raises
    `InvalidRequest` for what is no bot token or lacks a scope, `CredentialRejected` and
    `ServiceUnreachable`; nothing is changed then.
    """
    if shared:
        must_share(by)
    token = token.strip()
    if not _SLACK_TOKEN.fullmatch(token):
        raise InvalidRequest(
            "token: This is no bot token: it begins with xoxb-. You find it in your Slack app's "
            "settings under OAuth & Permissions.",
            code="invalid_token",
        )
    sealed = SecretText.seal(token)
    account = _slack_account(sealed)
    return store_credential(CredentialProvider.SLACK, sealed, account, by=by, shared=shared)


@transaction.atomic
def remove_credential(provider: str, *, by: Person, shared: bool = False) -> None:
    """Forget the own credential, or with `shared` everybody's. Raises `NotFound`."""
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
    """Forget anybody's credential, as an operator. Raises `NotAllowed` and `NotFound`."""
    if not (isinstance(by, PermissionsMixin) and by.has_perm("agents.delete_credential")):
        raise NotAllowed("Removing the credentials of others needs agents.delete_credential.")
    row = Credential.objects.select_for_update().filter(pk=credential_id).first()
    if row is None:
        raise NotFound("There is no such credential.")
    if row.owner_id is None:
        must_share(by)
    record("credential.removed", row, by=by)
    row.delete()


@transaction.atomic
def store_credential(
    provider: CredentialProvider, secret: SecretText, account: str, *, by: Person, shared: bool
) -> Credential:
    """Put what was checked in place of the one that is there."""
    row, _ = Credential.objects.update_or_create(
        provider=provider,
        owner_id=None if shared else by.pk,
        defaults={"secret": secret, "account": account[:200], "created_by_id": by.pk},
    )
    record("credential.stored", row, by=by, changes={"account": (None, row.account)})
    return row


def _slack_account(token: SecretText) -> str:
    try:
        account = SlackClient(token, seconds=CHECK_SECONDS).account()
    except SlackFailed as failure:
        if failure.code in REJECTED:
            raise CredentialRejected(
                "token: Slack does not accept this token. Copy it anew from your Slack app."
            ) from None
        raise ServiceUnreachable(f"The token was not stored. {failure}") from None
    _check_scopes(account)
    return f"{account.user} in {account.team}"


def _check_scopes(account: SlackAccount) -> None:
    missing = [scope for scope in SCOPES if scope not in account.scopes]
    if account.scopes and missing:
        raise InvalidRequest(
            f"token: It lacks the scopes {', '.join(missing)}: add them in your Slack app, "
            "install it anew and copy the token again.",
            code="missing_scope",
        )


def must_share(by: Person) -> None:
    """Raises `NotAllowed` if `by` may not."""
    if not may_share(by):
        raise NotAllowed(f"A credential for everybody needs the permission {SHARE}.")
