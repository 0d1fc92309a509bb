"""Gmail v1 of one mailbox: messages, threads, labels, drafts, attachments."""

from __future__ import annotations

import base64
import json
import time
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default
from typing import Any

from tests.support.google_wire import Refused, allow, fields, known, raw_bytes

READ = ("gmail.readonly", "gmail.modify", "https://mail.google.com/")
SYSTEM = ("INBOX", "SENT", "DRAFT", "UNREAD", "STARRED", "IMPORTANT", "TRASH", "SPAM")
LARGE = 5_000
"""The size in bytes from which a part has a separate address."""


def _missing() -> Refused:
    return Refused.of(404, "Requested entity was not found.", "notFound")


class GmailApi:
    def __init__(self, address: str) -> None:
        self.address = address
        self.rewrites_message_ids = True
        self.labels = {name: name for name in SYSTEM} | {"Label_7": "Receipts"}
        self.messages: dict[str, dict[str, Any]] = {}
        self.drafts: dict[str, str] = {}
        self.sent: list[Message] = []

    def receive(self, message: EmailMessage, *labels: str, thread: str = "") -> str:
        return self._keep(message.as_bytes(), ["INBOX", "UNREAD", *labels], thread)

    def answer(
        self,
        method: str,
        parts: list[str],
        query: dict[str, list[str]],
        body: Any,
        scopes: set[str],
    ) -> tuple[int, Any]:
        match method, parts:
            case "GET", ["profile"]:
                allow(scopes, *READ, "gmail.compose")
                return 200, {"emailAddress": self.address, "messagesTotal": len(self.messages)}
            case "GET", ["labels"]:
                allow(scopes, *READ)
                return 200, {
                    "labels": [
                        {"id": key, "name": name, "type": "system" if key in SYSTEM else "user"}
                        for key, name in self.labels.items()
                    ]
                }
            case "GET", ["messages"]:
                allow(scopes, *READ)
                return 200, self._list(query)
            case "POST", ["messages", "send"]:
                allow(scopes, *READ[1:], "gmail.send", "gmail.compose")
                return 200, self._send(fields(body, "raw", "threadId"))
            case "POST", ["messages", "batchModify"]:
                allow(scopes, *READ[1:])
                return 204, self._modify(fields(body, "ids", "addLabelIds", "removeLabelIds"))
            case "POST", ["drafts"]:
                allow(scopes, *READ[1:], "gmail.compose")
                given = fields(fields(body, "message")["message"], "raw", "threadId")
                key = self._keep(raw_bytes(given.get("raw")), ["DRAFT"], given.get("threadId", ""))
                self.drafts[f"r{len(self.drafts) + 1}"] = key
                return 200, {"id": f"r{len(self.drafts)}", "message": {"id": key}}
            case "GET", ["messages", key]:
                allow(scopes, *READ)
                return 200, self._get(key, query)
            case "POST", ["messages", key, "trash"]:
                allow(scopes, *READ[1:])
                found = self._found(key)
                found["labels"] = [*(set(found["labels"]) - {"INBOX"}), "TRASH"]
                return 200, {"id": key}
            case "GET", ["messages", key, "attachments", attachment]:
                allow(scopes, *READ)
                return 200, self._attachment(key, attachment)
            case "GET", ["threads", thread]:
                allow(scopes, *READ)
                known(query, "format")
                inside = [key for key, one in self.messages.items() if one["thread"] == thread]
                if not inside:
                    raise _missing()
                shown = [self._get(key, {"format": ["full"]}) for key in inside]
                return 200, {"id": thread, "messages": shown}
        raise Refused.of(404, "Not Found", "notFound")

    def uploaded(self, kind: str, body: bytes) -> Any:
        """Return the message of a multipart/related body: JSON, then message/rfc822."""
        whole = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        about, message = whole.get_payload()  # type: ignore[misc]
        assert about.get_content_type() == "application/json"  # type: ignore[union-attr]
        assert message.get_content_type() == "message/rfc822"  # type: ignore[union-attr]
        raw = body.split(b"message/rfc822\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
        encoded = base64.urlsafe_b64encode(raw).decode()
        given = json.loads(about.get_payload())  # type: ignore[union-attr,arg-type]
        if "message" in given:
            return {"message": {**given["message"], "raw": encoded}}
        return {**given, "raw": encoded}

    def _found(self, key: str) -> dict[str, Any]:
        if key not in self.messages:
            raise _missing()
        return self.messages[key]

    def _keep(self, raw: bytes, labels: list[str], thread: str) -> str:
        key = f"18c{len(self.messages):013x}"
        message = message_from_bytes(raw, policy=default)
        self.messages[key] = {
            "message": message,
            "labels": labels,
            "thread": thread or key,
            "ms": int(time.time() * 1000),
        }
        return key

    def _send(self, given: dict[str, Any]) -> Any:
        raw = raw_bytes(given.get("raw"))
        message = message_from_bytes(raw, policy=default)
        headers = [message[name] for name in ("To", "Cc", "Bcc") if name in message]
        if not any(address.domain for header in headers for address in header.addresses):
            raise Refused.of(400, "Recipient address required", "invalidArgument")
        if message.defects or ("From" in message and self.address not in str(message["From"])):
            raise Refused.of(400, "Invalid message", "invalidArgument")
        thread = given.get("threadId", "")
        if thread and thread not in {one["thread"] for one in self.messages.values()}:
            raise _missing()
        self.sent.append(message)
        key = self._keep(raw, ["SENT"], thread)
        if self.rewrites_message_ids:
            kept = self.messages[key]["message"]
            del kept["Message-ID"]
            kept["Message-ID"] = f"<CA{key}@mail.gmail.com>"
        return {"id": key, "threadId": self.messages[key]["thread"], "labelIds": ["SENT"]}

    def _modify(self, given: dict[str, Any]) -> None:
        changed = [*given.get("addLabelIds", ()), *given.get("removeLabelIds", ())]
        if not changed:
            raise Refused.of(400, "No label add or removes specified", "invalidArgument")
        for label in changed:
            if label not in self.labels or label in ("SENT", "DRAFT"):
                raise Refused.of(400, f"Invalid label: {label}", "invalidArgument")
        for key in given["ids"]:
            labels = set(self._found(key)["labels"])
            labels |= set(given.get("addLabelIds", ()))
            self.messages[key]["labels"] = sorted(labels - set(given.get("removeLabelIds", ())))

    def _list(self, query: dict[str, list[str]]) -> Any:
        given = known(query, "q", "labelIds", "maxResults", "pageToken", "includeSpamTrash")
        words = given.get("q", "").lower().split()
        wanted = set(query.get("labelIds", ()))
        if wanted - set(self.labels):
            raise Refused.of(400, "Invalid label", "invalidArgument")
        found = [
            key
            for key, one in reversed(self.messages.items())
            if wanted <= set(one["labels"])
            and ("includeSpamTrash" in given or not {"TRASH", "SPAM"} & set(one["labels"]))
            and all(word in str(one["message"]).lower() for word in words)
        ]
        start = int(given.get("pageToken", "0"))
        end = start + min(int(given.get("maxResults", 100)), 500)
        page = [{"id": key, "threadId": self.messages[key]["thread"]} for key in found[start:end]]
        answer: dict[str, Any] = {"resultSizeEstimate": len(found)}
        if page:
            answer["messages"] = page
        if end < len(found):
            answer["nextPageToken"] = str(end)
        return answer

    def _get(self, key: str, query: dict[str, list[str]]) -> Any:
        given = known(query, "format", "metadataHeaders")
        one = self._found(key)
        message = one["message"]
        about = {
            "id": key,
            "threadId": one["thread"],
            "labelIds": list(one["labels"]),
            "snippet": "A snippet",
            "internalDate": str(one["ms"]),
        }
        if given.get("format") == "metadata":
            names = {name.lower() for name in query.get("metadataHeaders", ())}
            heads = [item for item in _heads(message) if item["name"].lower() in names]
            return {**about, "payload": {"mimeType": message.get_content_type(), "headers": heads}}
        return {**about, "payload": _payload(message, "")}

    def _attachment(self, key: str, attachment: str) -> Any:
        for part in self._found(key)["message"].walk():
            if not part.is_multipart() and f"ANGj{abs(hash(part))}" == attachment:
                data = part.get_payload(decode=True)
                return {"size": len(data), "data": base64.urlsafe_b64encode(data).decode()}
        raise _missing()


def _heads(message: Message) -> list[dict[str, str]]:
    return [{"name": name, "value": str(value)} for name, value in message.raw_items()]


def _payload(message: Message, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partId": place,
        "mimeType": message.get_content_type(),
        "filename": message.get_filename() or "",
        "headers": _heads(message),
    }
    if message.is_multipart():
        inner = message.get_payload()
        before = f"{place}." if place else ""
        found["parts"] = [_payload(part, f"{before}{at}") for at, part in enumerate(inner)]  # type: ignore[arg-type]
        return {**found, "body": {"size": 0}}
    data = message.get_payload(decode=True) or b""
    body: dict[str, Any] = {"size": len(data)}  # type: ignore[arg-type]
    if found["filename"] or len(data) > LARGE:  # type: ignore[arg-type]
        body["attachmentId"] = f"ANGj{abs(hash(message))}"
    else:
        body["data"] = base64.urlsafe_b64encode(data).decode()  # type: ignore[arg-type]
    return {**found, "body": body}
