"""Names of mails and labels for the people who decide: they cannot know the ids."""

from __future__ import annotations

from collections.abc import Sequence

from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.gmail import Mailbox
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.inputs import with_google
from agents.hidden_text import one_line
from agents.middleware.context import ToolContext


async def described(context: ToolContext, mails: Sequence[str], labels: Sequence[str] = ()) -> str:
    """Return a line for each mail, with its subject and sender, and for each label with an id."""

    def ask(google: GoogleSession) -> str:
        box = Mailbox(google)
        return "\n".join([*_mails(box, mails), *_labels(box, labels)])

    found = await with_google(context, ask)
    return f"Google does not name the mails: {found.content}" if found.is_error else found.content


def _mails(box: Mailbox, ids: Sequence[str]) -> Sequence[str]:
    def line(message_id: str) -> str:
        try:
            found = box.summary(message_id)
        except GoogleFailed as failure:
            return f"Google does not name the mail {message_id}: {failure}"
        subject = one_line(found["subject"], 80) or "(no subject)"
        sender = one_line(found.get("from", ""), 80) or "(no sender)"
        return f"{message_id} is the mail “{subject}” from {sender}."

    return box.each(line, list(dict.fromkeys(ids)))


def _labels(box: Mailbox, labels: Sequence[str]) -> Sequence[str]:
    wanted = [label for label in dict.fromkeys(labels) if label.startswith("Label_")]
    if not wanted:
        return []
    try:
        names = {item["id"]: item["name"] for item in box.labels()}
    except GoogleFailed as failure:
        return [f"Google does not name the labels: {failure}"]
    return [
        f"{label} is the label “{one_line(names[label], 80)}”."
        if label in names
        else f"There is no label {label}."
        for label in wanted
    ]
