"""Spans with texts of models and their servers: other spans are not lost, and limits hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents.providers.base import ProviderError, Reply, Usage
from agents.telemetry.model_watch import watched_model_call
from agents.telemetry.otlp import SpanQueue
from agents.telemetry.process import Instruments
from agents.telemetry.spans import (
    LONGEST,
    Span,
    Trace,
    harmless,
    of_tool_call,
    reply_message,
    short,
)
from agents.telemetry.tool_watch import watched_command, watched_tool_call
from agents.telemetry.watch import watched_claim
from sandbox.result import ExecutionResult
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.support.otlp import collector

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
GOOD = Span("chat good", 1, 2, None, 1_000, 2_000, {"a": "b"})
HOSTILE: dict[str, Any] = {
    "half a character": "a\ud800b",
    "half a character in a list": ["a\ud800b"],
    "no text in a list": ["a", None, {"b": 1}],
    "no value": None,
    "a dictionary": {"a": [1]},
    "a huge number": 2**70,
    "a long text": "x" * (LONGEST + 1),
    "a long list": ["x" * (LONGEST + 1)] * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_invalid_value_does_not_lose_its_batch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, int] = {}

    def count(outcome: str, number: int) -> None:
        told[outcome] = told.get(outcome, 0) + number

    with collector() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        spans = SpanQueue(count)
        spans.put(replace(GOOD, span_id=3, attributes={"gen_ai.response.model": HOSTILE[name]}))
        spans.put(GOOD)
        assert spans.flush(20)
        assert told == {"exported": 2}
        came = there.wait(lambda spans: len(spans) == 2)
        other = [span for span in came if "gen_ai.response.model" in span.attributes]
    assert len(other) == 1
    assert len(repr(other)) < 101 * LONGEST + 10_000


def test_names_errors_and_messages_can_be_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "a\ud800" + "x" * LONGEST
    with collector() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        spans = SpanQueue()
        spans.put(replace(GOOD, name=odd, error=odd, message=odd))
        assert spans.flush(20)
        [span] = there.wait(bool)
    assert span.failed
    assert span.name == "a?" + "x" * 198
    assert len(span.message) == LONGEST
    assert span.attributes["error.type"] == "_OTHER"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wanted", [False, True])
def test_spans_contain_messages_and_calls_only_by_setting(wanted: bool) -> None:
    make_agent(sandbox=False)
    run = make_run(make_user("ann"))
    kept = InMemorySpanExporter()
    spans = SpanQueue(exporter=kept)
    words = f"purple elephant {KEY}"
    reply = Reply([{"type": "text", "text": words}], "end_turn", Usage(1, 2), "m")
    with watched_claim(Instruments(spans, None, wanted), Trace(1, 2), run, 1, "w", recovered=False):
        with watched_model_call("scripted", 1, 1) as call:
            call.reply = reply
        with pytest.raises(ProviderError), watched_model_call("scripted", 2, 1):
            raise ProviderError(words, code="overloaded")
        with watched_tool_call("execute", "t", (1, 0), 1, f'{{"command": "{words}"}}') as done:
            with watched_command("bash", words) as ran:
                ran.result = ExecutionResult(words, words, 1)
            done.result = words
        with pytest.raises(ValueError, match="purple"), watched_command("bash", "true"):
            raise ValueError(words)
    assert spans.flush(20)
    told = [(span.name.split()[0], str(span.to_json())) for span in kept.get_finished_spans()]
    command = "vel.sandbox.command"
    assert [name for name, _ in told] == [
        "chat", "chat", command, "execute_tool", command, "vel.drive",
    ]  # fmt: skip
    text = repr(told)
    assert KEY not in text
    assert text.count("purple elephant [secret withheld]") == (5 if wanted else 0)
    assert ("purple" in text) is wanted
    assert "ValueError" in text


def test_keys_are_masked_in_all_content() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": f"is {KEY}"},
        {"type": "thinking", "thinking": f"so {KEY}", "signature": KEY},
        {"type": "tool_use", "id": "t", "name": "execute", "input": {"command": f"echo {KEY}"}},
        {"type": "image", "source": {"data": KEY}},
    ]
    told = reply_message(blocks, "end_turn")
    assert told.count("[secret withheld]") == 3
    call = of_tool_call(f'{{"a": "{KEY}"}}', [{"type": "text", "text": KEY}])
    for text in (told, repr(call), harmless(KEY), short(f"no\n{KEY}")):
        assert "sk-ant" not in text
        assert "[secret withheld]" in text
    assert len(harmless("x" * (3 * LONGEST))) == LONGEST
    assert short("a\n\n b" + "x" * 9_000) == "a b" + "x" * 997
