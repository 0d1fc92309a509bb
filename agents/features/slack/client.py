"""Calls of Slack's Web API with a bot token. Each call blocks, at most for its timeout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from django.views.decorators.debug import sensitive_variables

from agents.features.slack.settings import SlackSettings
from agents.kernel.lazy_modules import lazy_modules
from agents.secret_text import SecretText

with lazy_modules:
    from slack_sdk import errors, web  # takes 0.1 s, which agents without Slack should not pay


PAGE = 200
"""Slack's recommended limit for the size of a page."""
MAX_PAGES = 20
SCOPES = ("channels:read", "groups:read", "chat:write")

_SAID = {
    "invalid_auth": "Slack does not accept the token: connect Slack again.",
    "not_authed": "Slack does not accept the token: connect Slack again.",
    "account_inactive": "The bot's account is deactivated: connect Slack again.",
    "token_revoked": "The token was revoked: connect Slack again.",
    "token_expired": "The token has expired: connect Slack again.",
    "channel_not_found": "There is no such channel, or the bot cannot see it: take an id from "
    "list_slack_channels.",
    "not_in_channel": "The bot is not in that channel: somebody must invite it there.",
    "is_archived": "That channel is archived.",
    "msg_too_long": "The message is too long for Slack: shorten it.",
    "no_text": "The message is empty.",
    "restricted_action": "The workspace does not let the bot write there.",
    "ratelimited": "Slack wants fewer calls: wait a minute.",
}
REJECTED = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)


class SlackFailed(Exception):
    """Slack refused a request or could not be reached. The message has no part of the token.

    `code` is Slack's error code, or `unreachable`. `sent` is None if it is unknown whether Slack
    has carried out the request.
    """

    def __init__(self, message: str, code: str, *, sent: bool | None = False) -> None:
        super().__init__(message)
        self.code = code
        self.sent = sent


@dataclass(frozen=True)
class SlackAccount:
    """The account and the scopes of a token (empty if Slack does not report them)."""

    team: str
    user: str
    scopes: frozenset[str]


class SlackClient:
    """One bot's access. It never retries, so that a message cannot be sent twice."""

    def __init__(self, token: SecretText, *, seconds: float = 20.0) -> None:
        self._token = token
        self._seconds = max(1, round(seconds))

    @sensitive_variables()
    def _client(self) -> web.WebClient:
        # Without retry handlers: the default handlers send again after a lost connection.
        return web.WebClient(
            token=self._token.reveal(),
            base_url=SlackSettings.now().SLACK_URL,
            timeout=self._seconds,
            retry_handlers=[],
        )

    def account(self) -> SlackAccount:
        """Return the token's account. Raises `SlackFailed`."""
        answer = self._ask(lambda client: client.auth_test())
        scopes = str(answer.headers.get("x-oauth-scopes", ""))
        return SlackAccount(
            team=str(answer.get("team", "")),
            user=str(answer.get("user", "")),
            scopes=frozenset(filter(None, (part.strip() for part in scopes.split(",")))),
        )

    def channels(self, limit: int) -> list[dict[str, Any]]:
        """Return id, name and is_private of channels that the bot can see, at most `limit`.

        Archived channels are omitted. Raises `SlackFailed`.
        """
        found: list[dict[str, Any]] = []
        cursor = ""
        for _ in range(MAX_PAGES):
            page = min(PAGE, limit - len(found))
            answer = self._ask(
                lambda client, page=page, cursor=cursor: client.conversations_list(  # type: ignore[misc]
                    limit=page,
                    cursor=cursor or None,
                    types="public_channel,private_channel",
                    exclude_archived=True,
                )
            )
            channels: list[dict[str, Any]] = answer.get("channels") or []
            found += [
                {
                    "id": str(channel["id"]),
                    "name": str(channel.get("name", "")),
                    "is_private": bool(channel.get("is_private")),
                }
                for channel in channels
            ]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor or len(found) >= limit:
                break
        return found[:limit]

    def channel(self, channel_id: str) -> dict[str, Any]:
        """Return the name of a channel and whether it is private. Raises `SlackFailed`."""
        answer = self._ask(lambda client: client.conversations_info(channel=channel_id))
        found: dict[str, Any] = answer.get("channel") or {}
        return {
            "name": str(found.get("name", "")),
            "is_private": bool(found.get("is_private")),
        }

    def send(self, channel_id: str, text: str) -> dict[str, Any]:
        """Post a message; return ok, ts, channel. Links are not unfurled: Slack fetches none.

        Raises `SlackFailed`.
        """
        answer = self._ask(
            lambda client: client.chat_postMessage(
                channel=channel_id, text=text, unfurl_links=False, unfurl_media=False
            ),
            writes=True,
        )
        return {
            "ok": bool(answer.get("ok")),
            "ts": str(answer.get("ts", "")),
            "channel": str(answer.get("channel", "")),
        }

    def _ask(
        self, call: Callable[[web.WebClient], web.SlackResponse], *, writes: bool = False
    ) -> web.SlackResponse:
        client = self._client()
        try:
            return call(client)
        except errors.SlackApiError as error:
            raise _refusal(error, writes=writes) from None
        except (errors.SlackClientError, HTTPException, OSError, ValueError) as error:
            # Raised without its cause: its traceback could show the request's headers.
            unknown = writes and not _never_sent(error)
            raise SlackFailed(
                "Slack could not be reached"
                + (
                    ", and it is unknown whether the message was sent: look there first."
                    if unknown
                    else f" ({type(error).__name__}): try again later."
                ),
                "unreachable",
                sent=None if unknown else False,
            ) from None


def _refusal(error: Any, *, writes: bool) -> SlackFailed:
    """Return Slack's error, without the answer's other fields."""
    answer = error.response
    data = answer.data if isinstance(answer.data, dict) else {}
    code = str(data.get("error", "")) or f"http_{answer.status_code}"
    if answer.status_code == 429:
        code = "ratelimited"
    if code == "missing_scope":
        text = f"The bot lacks the scope {str(data.get('needed', ''))[:200]}: add it in Slack."
    else:
        text = _SAID.get(code, f"Slack refused: {code[:100]}.")
    # A server error can come after the message was sent.
    unknown = writes and answer.status_code >= 500
    if unknown:
        text += " It is unknown whether the message was sent: look there first."
    return SlackFailed(text, code, sent=None if unknown else False)


def _never_sent(error: Exception) -> bool:
    reason = getattr(error, "reason", error)
    return isinstance(reason, ConnectionRefusedError) or (
        isinstance(error, HTTPError) and error.code < 500
    )
