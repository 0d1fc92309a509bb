"""Messages by e-mail, to a real mail server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.test import override_settings

from agents.features.notifications.delivery import deliver_next, send_test
from agents.features.notifications.models import Notification
from agents.features.notifications.webhook import DeliveryFailed
from agents.models import Agent
from agents.services.errors import InvalidRequest
from tests.agents.features.notifications.waiting import asked, email, make_due, private
from tests.support.receivers import Mailbox, mail_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    smtp = "django.core.mail.backends.smtp.EmailBackend"
    with (
        mail_server() as box,
        override_settings(
            EMAIL_BACKEND=smtp,
            EMAIL_HOST="127.0.0.1",
            EMAIL_PORT=box.port,
            DEFAULT_FROM_EMAIL="vel@example.org",
        ),
    ):
        yield box


def test_a_mail_names_and_links_the_request_without_the_content_of_the_call(
    mailbox: Mailbox,
) -> None:
    target = email()
    [request] = asked()
    request.input = {"path": "/secret-path", "content": "hunter2"}
    request.prompt = "It is the first time."
    request.expires_at = datetime(2030, 5, 4, 12, 30, tzinfo=UTC)
    request.save()
    with private(PUBLIC_URL="https://vel.example.org"):
        assert deliver_next(target.id)
    [mail] = mailbox.mails
    assert mailbox.recipients == [["ada@example.org"]]
    assert mail["Subject"] == "[Vel] Tester asks: write_file"
    assert (mail["To"], mail["From"]) == ("ada@example.org", "vel@example.org")
    assert mail["Message-ID"] == f"<{Notification.objects.get().id}@vel>"
    assert mail.get_content().splitlines() == [
        "The agent Tester asks before it calls write_file.",
        "Why it is asked: It is the first time.",
        "Without an answer it is rejected at 2030-05-04 12:30 UTC.",
        "",
        f"https://vel.example.org/approvals/{request.id}/",
    ]
    assert "hunter2" not in str(mail)
    assert "secret-path" not in str(mail)


def test_no_header_can_be_added_by_a_name(mailbox: Mailbox) -> None:
    target = email()
    [request] = asked()
    request.tool = "write\r\nBcc: eve@example.org\r\n\r\nHello\u202e"
    request.save()
    Agent.objects.update(name="A\nB\rC\x1b\u2028D")
    assert deliver_next(target.id)
    [mail] = mailbox.mails
    assert mail["Bcc"] is None
    assert mailbox.recipients == [["ada@example.org"]]
    assert mail["Subject"].strip() == (
        "[Vel] A B⟨U+000D⟩C⟨U+001B⟩⟨U+2028⟩D asks: "
        "write⟨U+000D⟩ Bcc: eve@example.org⟨U+000D⟩ ⟨U+000D⟩ Hello⟨U+202E⟩"
    )


def test_a_mail_that_is_refused_is_tried_again_with_the_same_id(mailbox: Mailbox) -> None:
    target = email()
    asked()
    mailbox.refuse = "451 greylisted"
    assert not deliver_next(target.id)
    row = Notification.objects.get()
    assert (row.status, row.attempts) == ("pending", 1)
    assert "greylisted" in row.error
    mailbox.refuse = ""
    make_due()
    assert deliver_next(target.id)
    assert mailbox.mails[0]["Message-ID"] == f"<{row.id}@vel>"


def test_a_missing_mail_server_is_a_failure(mailbox: Mailbox) -> None:
    target = email()
    asked()
    with override_settings(EMAIL_PORT=1):
        assert not deliver_next(target.id)
        with pytest.raises(DeliveryFailed):
            send_test(target)
    assert "refused" in Notification.objects.get().error
    send_test(target)
    assert mailbox.mails[0]["Subject"] == "[Vel] a test message"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "ada@example.org\nBcc: eve@example.org",
        "ada@example.org\r\n",
        "ada@example.org, eve@example.org",
        "Ada <ada@example.org>",
        "ada@example.org;eve@example.org",
        "adä@example.org",
        f"{'a' * 500}@example.org",
    ],
)
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(InvalidRequest):
        email(address)
