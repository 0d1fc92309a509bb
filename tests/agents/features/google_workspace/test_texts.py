"""Texts in and out: HTML, headers, composed messages, errors, prompts."""

from __future__ import annotations

import time
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest

from agents.events.append import dump
from agents.features.google_workspace.client import mail
from agents.features.google_workspace.client.calendar import event_id
from agents.features.google_workspace.client.errors import refusal
from agents.features.google_workspace.client.gmail_sending import File, Letter, composed, mark_of
from agents.features.google_workspace.client.plain_text import from_html, plain
from agents.features.google_workspace.middleware import calendar, calendar_changes, gmail
from agents.middleware.registry import build_toolset
from agents.middleware.wire_schema import wire_schema
from agents.spec import AgentSpec


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(name="T", slug="t", provider="scripted", model="echo", **fields)


@pytest.mark.parametrize(
    "unseen",
    [
        "<div style='DISPLAY : none'>X</div>",
        "<div style='opacity:0;'>X</div>",
        "<font style='font-size: 0pt'>X</font>",
        "<p hidden>X</p>",
        "<div style='display:none'><p>X</p></div>",
        "<div style='display:none'><br>X<img alt='X'></div>",
        "<script>X</script><style>X</style><template>X</template><!-- X -->",
        "<div style='mso-hide:all'>X",
        "\u200b\u202e\U000e0058",
    ],
)
def test_invisible_text_is_omitted(unseen: str) -> None:
    assert from_html(f"<p>Before</p>{unseen}").text == "Before"


@pytest.mark.parametrize(
    "seen",
    [
        "<p style='font-size:0.9em'>X</p>",
        "<p style='opacity:0.5'>X</p>",
        "</div></p>X",
        "<div style='display:none'>y</div>X",
        "<div style='display:none'><b>y</div>X",
        "<img alt='X'>",
        "&#88;",
    ],
)
def test_visible_text_stays(seen: str) -> None:
    assert "X" in from_html(seen).text


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "part",
    ["<div>", "<a href=", "</b>", "<!--", "<a b='", "<a b ", "<script>", "<!", "<", "&#",
     "<p hidden>", "<b></i>", "&#" + "9" * 5_000 + ";", "<a =", "<a /"],
)  # fmt: skip
def test_hostile_html_takes_linear_time(part: str) -> None:
    begun = time.process_time()
    from_html("<b>X</b>" + part * (400_000 // len(part)))
    assert time.process_time() - begun < 3


def test_a_false_charset_is_not_an_error() -> None:
    part = {
        "mimeType": "text/plain",
        "headers": [{"name": "Content-Type", "value": "x; charset=?"}],
    }
    assert mail.text_of(part, "4pyTIG9r").text == "✓ ok"
    assert mail.text_of(part, "_w").text == "ÿ"
    part["headers"] = [{"name": "Content-Type", "value": "text/plain; charset=none-such"}]
    assert mail.text_of(part, "_w").text == "ÿ"
    assert mail.text_of(part, "!!").text == ""


def test_headers_are_one_line_and_decoded() -> None:
    value = "=?utf-8?q?Gr=C3=BC=C3=9Fe=0A?= =?utf-8?b?4oCuZXZpbA==?="
    message = {"payload": {"headers": [{"name": "Subject", "value": value}]}}
    assert mail.header(message, "subject") == "Grüße evil"
    broken = {"payload": {"headers": [{"name": "Subject", "value": "=?utf-8?b?!?="}, "x"]}}
    assert mail.header(broken, "Subject")
    assert mail.attachments({"payload": {"parts": "x", "mimeType": "text/plain"}}) == []


def test_a_deep_message_is_read() -> None:
    part: dict[str, Any] = {"mimeType": "text/plain", "body": {"data": "aGk="}}
    for _ in range(400):
        part = {"mimeType": "multipart/mixed", "parts": [part]}
    found = mail.text_part({"payload": part})
    assert found is not None
    for _ in range(4_000):
        part = {"mimeType": "multipart/mixed", "parts": [part]}
    assert mail.text_part({"payload": part}) is None


def test_a_letter_is_one_message() -> None:
    files = [File('a"\r\nX: y.eml', b"From: x\r\n\r\nbody")]
    letter = Letter(["bob@example.org"], "Grüße " * 30, "a\n.\nFrom b\n", files=files)
    message = message_from_bytes(composed(letter, "mark"), policy=default)
    assert message["Subject"].strip() == ("Grüße " * 30).strip()
    assert message["X"] is None
    (file,) = message.iter_attachments()  # type: ignore[attr-defined]
    assert file.get_content_type() == "application/octet-stream"
    assert not file.defects
    with pytest.raises(ValueError, match="linefeed"):
        composed(Letter(["bob@example.org"], "a\nBcc: eve@example.org", ""), "mark")


def test_marks_and_ids_are_of_a_run_and_its_words() -> None:
    words = {"to": ["a@example.org"], "text": "x"}
    assert mark_of("r", words) == mark_of("r", dict(reversed(words.items())))
    assert len({mark_of("r", words), mark_of("s", words), mark_of("r", {**words, "text": ""})}) == 3
    made = event_id("r", "primary", words, 0)
    assert set(made) <= set("abcdefghijklmnopqrstuv0123456789")
    assert made != event_id("r", "primary", words, 1)


@pytest.mark.parametrize("header", ["", "soon", "-5", "1" * 400, "Mon, 99 Foo 2026", "²"])
def test_a_wrong_retry_after_is_not_an_error(header: str) -> None:
    failure = refusal(429, b"", header, (), writes=True)
    assert failure.code == "ratelimited"
    assert failure.sent is False


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"error": "x"}', b'{"error": {"errors": [1]}}']
)
def test_an_odd_refusal_is_not_an_error(body: bytes) -> None:
    assert refusal(400, body, "", (), writes=True).code == "http_400"


def test_invisible_characters_are_counted() -> None:
    found = plain("a\u200bb\r\nc\ufeff")
    assert (found.text, found.left_out) == ("ab\nc", 2)


def test_unconfigured_services_are_not_offered_and_cost_nothing() -> None:
    def offered(**fields: Any) -> set[str]:
        return set(build_toolset(spec(**fields)).tools)

    rest = offered()
    assert offered(integrations=("slack",)) - rest == {"list_slack_channels", "send_slack_message"}
    assert len(offered(integrations=("gmail",)) - rest) == 9
    assert len(offered(integrations=("calendar",)) - rest) == 8
    one = offered(integrations=("gmail", "calendar"), tools=("read_gmail_message",))
    assert one == {"read_gmail_message"}


@pytest.mark.parametrize(
    "tools", [gmail.READING, gmail.CHANGING, calendar.READING, calendar_changes.CHANGING]
)
def test_descriptions_and_schemas_stay_small(tools: list[Any]) -> None:
    wire = [
        {"name": one.name, "description": one.description, "schema": wire_schema(one.input_model)}
        for one in tools
    ]
    assert len(dump(wire).encode()) <= 1.8 * 1024
