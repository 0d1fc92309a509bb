"""Fallbacks between two servers with different protocols, and the Gemini API in whole runs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from agents.models import Message, Run
from agents.providers.base import Usage
from agents.providers.prices import cost_microusd
from tests.support.google_api import GoogleServer
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import ToolUse, Turn, by_reply, http_error
from tests.support.runs import drive_to_end, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)

CLAUDE, GEMINI = "claude-haiku-4-5", "gemini-3.8-flash"
TO_GEMINI = [{"provider": "google", "model": GEMINI}]
TO_CLAUDE = [{"provider": "anthropic", "model": CLAUDE}]
LOOK = Turn(
    thinking="Where is it?",
    text="Looking.",
    tool_uses=[ToolUse("ls", {"path": "/"}), ToolUse("write_file", {"path": "/a", "content": "x"})],
)
ANSWER = Turn(text="All done.")
DEAD = Turn(text="Half", fault=http_error(529, "overloaded"))


@contextmanager
def configured(**vel: Any) -> Iterator[None]:
    values = {
        **settings.VEL,
        "ANTHROPIC_API_KEY": "key-of-anthropic",
        "GOOGLE_API_KEY": "key-of-google",
        "RETRY_BASE_SECONDS": 0.001,
        "MODEL_ATTEMPTS": 2,
        **vel,
    }
    with override_settings(VEL=values):
        yield


def a_run(provider: str, model: str, fallbacks: list[dict[str, str]], **fields: Any) -> Run:
    user = make_user()
    make_agent(user, provider=provider, model=model, fallbacks=fallbacks, **fields)
    return start_run(user, key="s")


def dead_url() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def test_a_fallback_server_replaces_a_missing_one() -> None:
    with (
        GoogleServer([LOOK, ANSWER], api_key="key-of-google") as google,
        configured(ANTHROPIC_BASE_URL=dead_url(), GOOGLE_BASE_URL=google.url),
    ):
        run = drive_to_end(a_run("anthropic", CLAUDE, TO_GEMINI))
    assert run.status == "completed", run.error_message
    assert google.violations == []
    assert google.keys_seen == {"key-of-google"}
    (event,) = events(run, "model.fallback")
    assert (event["from_provider"], event["provider"], event["code"]) == (
        "anthropic", "google", "connection",
    )  # fmt: skip
    run.clock.refresh_from_db()
    assert run.clock.cost_known


@pytest.mark.slow
def test_a_conversation_goes_from_one_protocol_to_the_other_and_back() -> None:
    """The first fails in the middle of a run and recovers; then the second fails for good."""
    claude = [LOOK, DEAD, DEAD, LOOK, ANSWER]
    gemini = [LOOK, ANSWER]
    with (
        MessagesServer(claude) as anthropic,
        GoogleServer(gemini) as google,
        configured(ANTHROPIC_BASE_URL=anthropic.url, GOOGLE_BASE_URL=google.url),
    ):
        first = drive_to_end(a_run("anthropic", CLAUDE, TO_GEMINI, thinking="adaptive"))
        second = drive_to_end(start_run(first.owner, "Again", key="s"))
    assert (first.status, second.status) == ("completed", "completed"), (
        first.error_message + second.error_message
    )
    assert anthropic.violations == []
    assert google.violations == []
    models = list(
        Message.objects.filter(run=first, role="assistant")
        .order_by("turn")
        .values_list("model", flat=True)
    )
    assert models == [CLAUDE, GEMINI, GEMINI]
    # Claude gets no signatures of Gemini, and Gemini gets no thinking blocks of Claude.
    assert "Where is it?" not in google.requests[0].body.decode()
    assert "thoughtSignature" in google.requests[-1].body.decode()
    assert "redacted_thinking" not in anthropic.requests[-1].body.decode()
    for reply in Message.objects.filter(run=first, role="assistant"):
        assert reply.cost_microusd is not None
        assert reply.cost_microusd > 0
    last = Message.objects.filter(run=first, model=GEMINI).latest("turn")
    used = Usage(last.input_tokens, last.output_tokens, last.cache_read_tokens)
    assert last.cost_microusd == cost_microusd(GEMINI, used)


def test_the_second_run_of_a_gemini_thread_sends_the_same_bytes_and_more() -> None:
    with (
        GoogleServer([LOOK, ANSWER, LOOK, ANSWER]) as google,
        configured(GOOGLE_BASE_URL=google.url),
    ):
        first = drive_to_end(a_run("google", GEMINI, [], thinking="adaptive", effort="high"))
        second = drive_to_end(start_run(first.owner, "Again", key="s"))
    assert (first.status, second.status) == ("completed", "completed"), second.error_message
    assert google.violations == []
    bodies = [request.body for request in google.requests]
    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}]}"))
    assert first.thread.epochs.count() == 1
    tools = json.loads(bodies[0])["tools"][0]["functionDeclarations"]
    assert {"ls", "write_file", "task"} <= {tool["name"] for tool in tools}
    assert events(first, "reasoning.completed")[0]["text"] == "Where is it?"


def test_another_gemini_model_is_not_sent_the_signatures_of_the_first() -> None:
    """The server refuses signatures of another model; thinking blocks are left out."""
    other = [{"provider": "google", "model": "gemini-3.7-flash"}]

    def script(request: Any) -> Turn:
        if request.model == GEMINI:
            return LOOK if not request.replies else DEAD
        return ANSWER

    with GoogleServer(script) as google, configured(GOOGLE_BASE_URL=google.url):
        run = drive_to_end(a_run("google", GEMINI, other))
    assert run.status == "completed", run.error_message
    assert google.violations == []
    assert "skip_thought_signature_validator" in google.requests[-1].body.decode()
    assert "c2lnbmVk" not in google.requests[-1].body.decode()


@pytest.mark.parametrize("without_key", [True, False])
def test_a_missing_key_counts_if_the_operator_configures_it(
    without_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with (
        MessagesServer([ANSWER]) as anthropic,
        configured(
            ANTHROPIC_BASE_URL=anthropic.url,
            GOOGLE_API_KEY="",
            FALLBACK_WITHOUT_KEY=without_key,
        ),
    ):
        run = drive_to_end(a_run("google", GEMINI, TO_CLAUDE))
    if without_key:
        assert run.status == "completed", run.error_message
        assert [event["code"] for event in events(run, "model.fallback")] == ["missing_key"]
    else:
        assert (run.status, run.error_code) == ("failed", "model_missing_key")
        assert len(anthropic.requests) == 0


def test_an_unusable_fallback_is_reported_with_the_first_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with (
        MessagesServer(by_reply([DEAD])) as anthropic,
        configured(ANTHROPIC_BASE_URL=anthropic.url, GOOGLE_API_KEY=""),
    ):
        run = drive_to_end(a_run("anthropic", CLAUDE, TO_GEMINI))
    assert (run.status, run.error_code) == ("failed", "model_overloaded")
    assert "overloaded" in run.error_message
    assert "GOOGLE_API_KEY" in run.error_message
