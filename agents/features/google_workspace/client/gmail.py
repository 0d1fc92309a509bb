"""Calls of the Gmail API (v1) for one mailbox: reading, labels, trash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote

from agents.features.google_workspace.client import access, mail
from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.plain_text import PlainText
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.settings import GoogleSettings

T = TypeVar("T")
AT_ONCE = 5
"""Number of parallel requests: a list contains ids only, and each message needs a request."""
THREAD_MESSAGES = 50

SYSTEM_LABELS = frozenset(
    {"INBOX", "SENT", "DRAFT", "SPAM", "TRASH", "UNREAD", "STARRED", "IMPORTANT", "CHAT"}
)


def address(*parts: str, upload: bool = False) -> str:
    """Return a URL of the API.

    The parts are quoted, so that an id from the model cannot change the path.
    """
    root = GoogleSettings.now().GMAIL_URL.rstrip("/")
    before = "/upload" if upload else ""
    path = "/".join(quote(part, safe="") for part in parts)
    return f"{root}{before}/gmail/v1/users/me/{path}"


class Mailbox:
    """The mailbox of a session. Every method raises `GoogleFailed`."""

    def __init__(self, session: GoogleSession) -> None:
        self.session = session

    def owner(self) -> str:
        """Return the mailbox's address."""
        return str(self.session.ask("GET", address("profile"), access.PROFILE)["emailAddress"])

    def search(
        self, query: str, labels: Sequence[str], limit: int, page: str, *, trash: bool
    ) -> dict[str, Any]:
        """Return at most `limit` messages (newest first) and, if there are more, next_page.

        Labels are ids or names. With `trash`, messages in spam and trash are found too.
        """
        listed = self.session.ask(
            "GET",
            address("messages"),
            access.READ_MAIL,
            query={
                "q": query or None,
                "labelIds": [self._label_id(label) for label in labels] or None,
                "maxResults": limit,
                "pageToken": page or None,
                "includeSpamTrash": "true" if trash else None,
            },
        )
        ids = [str(item["id"]) for item in listed.get("messages") or ()]
        found: dict[str, Any] = {"messages": self.each(self.summary, ids)}
        if listed.get("nextPageToken"):
            found["next_page"] = str(listed["nextPageToken"])
        return found

    def read(self, message_id: str) -> dict[str, Any]:
        """Return one message with its text."""
        return self._whole(self.message(message_id))

    def read_thread(self, thread_id: str) -> dict[str, Any]:
        """Return the messages of a conversation; of a long one, the last messages."""
        thread = self.session.ask(
            "GET", address("threads", thread_id), access.READ_MAIL, query={"format": "full"}
        )
        messages = thread.get("messages") or []
        shown = messages[-THREAD_MESSAGES:]
        found: dict[str, Any] = {
            "thread_id": str(thread.get("id", "")),
            "messages": [self._whole(message) for message in shown],
        }
        if len(messages) > len(shown):
            found["earlier_messages_left_out"] = len(messages) - len(shown)
        return found

    def message(self, message_id: str, names: Sequence[str] = ()) -> dict[str, Any]:
        """Return a message in the API's format: whole, or with the headers `names` only."""
        query: dict[str, Any] = {"format": "full"}
        if names:
            query = {"format": "metadata", "metadataHeaders": list(names)}
        return self.session.ask(
            "GET", address("messages", message_id), access.READ_MAIL, query=query
        )

    def attachment(self, message_id: str, part: str, most: int) -> tuple[mail.Attached, bytes]:
        """Return the description and the bytes of the attachment `part`.

        Raises `GoogleFailed` if there is none, or if it has more than `most` bytes.
        """
        files = mail.attachments(self.message(message_id))
        found = next((item for item in files if item.part == part), None)
        if found is None:
            known = ", ".join(f"{item.part} ({item.name})" for item in files[:20]) or "none"
            raise GoogleFailed(
                f"The message has no attachment with this id. Its files are: {known}.", "no_part"
            )
        if found.size > most:
            raise GoogleFailed(
                f"The file has {found.size:,} bytes. The limit is {most:,} bytes.", "too_large"
            )
        return found, mail.decoded_bytes(found.data or self._data(message_id, found.attachment_id))

    def labels(self) -> list[dict[str, str]]:
        """Return id, name and type (system or user) of each label."""
        listed = self.session.ask("GET", address("labels"), access.READ_LABELS)
        return [
            {name: str(label.get(name, "")) for name in ("id", "name", "type")}
            for label in listed.get("labels") or ()
        ]

    def change_labels(
        self, ids: Sequence[str], add: Sequence[str], remove: Sequence[str]
    ) -> dict[str, Any]:
        """Add and remove labels, by id or name."""
        self.session.ask(
            "POST",
            address("messages", "batchModify"),
            access.CHANGE_MAIL,
            body={
                "ids": list(ids),
                "addLabelIds": [self._label_id(label) for label in add],
                "removeLabelIds": [self._label_id(label) for label in remove],
            },
            writes=True,
        )
        return {"changed": list(ids)}

    def trash(self, ids: Sequence[str]) -> dict[str, Any]:
        """Move messages to the trash in order. A failure's error names those that were moved."""
        done: list[str] = []
        for message_id in ids:
            try:
                self.session.ask(
                    "POST",
                    address("messages", message_id, "trash"),
                    access.CHANGE_MAIL,
                    writes=True,
                )
            except GoogleFailed as failure:
                told = f" Before it these were trashed: {', '.join(done)}." if done else ""
                raise GoogleFailed(
                    f"{message_id}: {failure}{told}",
                    failure.code,
                    sent=failure.sent,
                    status=failure.status,
                ) from None
            done.append(message_id)
        return {"trashed": done}

    def summary(self, message_id: str) -> dict[str, Any]:
        """Return a message's headers, labels and first words."""
        return mail.summary(self.message(message_id, mail.SHOWN_HEADERS))

    def each(self, call: Callable[[str], T], ids: Sequence[str]) -> Sequence[T]:
        """Return the result of `call` for each id. A few calls run at the same time."""
        if len(ids) < 2:
            return [call(message_id) for message_id in ids]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(call, ids))

    def _whole(self, message: dict[str, Any]) -> dict[str, Any]:
        part = mail.text_part(message)
        if part is None:
            return mail.whole(message, PlainText("", 0))
        body = part.get("body") or {}
        data = str(body.get("data") or "")
        if not data and body.get("attachmentId"):
            data = self._data(str(message["id"]), str(body["attachmentId"]))
        return mail.whole(message, mail.text_of(part, data))

    def _data(self, message_id: str, attachment_id: str) -> str:
        if not attachment_id:
            return ""
        place = address("messages", message_id, "attachments", attachment_id)
        return str(self.session.ask("GET", place, access.READ_MAIL).get("data", ""))

    def _label_id(self, label: str) -> str:
        """Return the label's id for an id or a name. System labels have the same id and name."""
        if label in SYSTEM_LABELS or label.startswith(("CATEGORY_", "Label_")):
            return label
        found = [item for item in self.labels() if label in (item["id"], item["name"])]
        if not found:
            raise GoogleFailed(
                f"There is no label {label!r}: take one from list_gmail_labels.", "no_label"
            )
        return found[0]["id"]
