"""Store a Slack bot token after Slack has confirmed its account."""

from __future__ import annotations

import re

from django.views.decorators.debug import sensitive_variables

from agents.features.credentials.public import (
    CHECK_SECONDS,
    Credential,
    CredentialRejected,
    ServiceUnreachable,
    must_share,
    store_credential,
)
from agents.features.slack.client import (
    REJECTED,
    SCOPES,
    SlackAccount,
    SlackClient,
    SlackFailed,
)
from agents.secret_text import SecretText
from agents.selectors.visible import Person
from agents.services.errors import InvalidRequest

PROVIDER = "slack"
_TOKEN = re.compile(r"xoxb-[0-9A-Za-z-]{10,250}")


@sensitive_variables("token")
def save_slack_token(token: str, *, by: Person, shared: bool = False) -> Credential:
    """Verify a bot token with Slack, and store it in place of the present one.

    It is for the runs of `by`, or with `shared` for all people without their own. Raises
    `NotAllowed` if `by` may not share credentials, `InvalidRequest` if it is not a bot token or
    lacks a scope, `CredentialRejected` and `ServiceUnreachable`; the stored token does not change
    then.
    """
    if shared:
        must_share(by)
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise InvalidRequest(
            "token: Expected a bot token that starts with xoxb-. Copy it from your Slack app's "
            "settings under OAuth & Permissions.",
            code="invalid_token",
        )
    sealed = SecretText.seal(token)
    account = _account(sealed)
    return store_credential(PROVIDER, sealed, account, by=by, shared=shared)


def _account(token: SecretText) -> str:
    try:
        account = SlackClient(token, seconds=CHECK_SECONDS).account()
    except SlackFailed as failure:
        if failure.code in REJECTED:
            raise CredentialRejected(
                "token: Slack does not accept this token. Copy it again from your Slack app."
            ) from None
        raise ServiceUnreachable(f"The token was not stored. {failure}") from None
    _check_scopes(account)
    return f"{account.user} in {account.team}"


def _check_scopes(account: SlackAccount) -> None:
    missing = [scope for scope in SCOPES if scope not in account.scopes]
    if account.scopes and missing:
        raise InvalidRequest(
            f"token: The scopes {', '.join(missing)} are missing. Add them in your Slack app, "
            "reinstall it and copy the token again.",
            code="missing_scope",
        )
