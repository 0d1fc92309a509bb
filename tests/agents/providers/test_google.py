"""The Gemini API over a real socket: requests, replies and failures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agents.providers.base import (
    PartDelta,
    PartStarted,
    PromptHead,
    ProviderError,
    Reply,
    Usage,
)
from agents.providers.google.conversation import ANY_SIGNATURE, MADE, GoogleConversation, parameters
from agents.providers.google.provider import GoogleProvider
from agents.providers.google.stream import ReplyBuilder
from agents.providers.registry import ProviderSettings, get_provider
from tests.agents.providers.calls import LS, add, add_results, reply_of, said
from tests.agents.providers.google_calls import HEAD, MODEL, answer, ask, failure, provider_for
from tests.support.google_api import GoogleServer
from tests.support.google_validation import check_request
from tests.support.messages_script import Fault, ToolUse, Turn, by_reply, http_error

OLD = "gemini-2.5-flash"
TWO = [ToolUse("ls", {"path": "/"}), ToolUse("ls", {"path": "/tmp"})]


def converse(
    server: GoogleServer, turns: int, head: PromptHead = HEAD, note: bool = True
) -> list[Reply]:
    """Run a tool loop of `turns` turns."""

    async def loop() -> list[Reply]:
        provider = provider_for(server)
        conversation = provider.conversation(head)
        conversation.append("user", said("Hello"))
        replies = []
        for turn in range(turns):
            reply = await reply_of(provider, conversation)
            replies.append(reply)
            add_results(conversation, reply, f"result {turn} ünï ")
            if note and turn % 5 == 2:
                add(conversation, "user", {"type": "text", "text": "A skill has changed."})
        await provider.close()
        return replies

    return asyncio.run(loop())


def test_text_and_thoughts_are_streamed_and_put_together() -> None:
    with GoogleServer([Turn(text="Hello, wörld 🙂!", thinking="Hm, let me see.")]) as server:
        head = replace(HEAD, thinking={"type": "adaptive", "display": "summarized"})
        *parts, reply = ask(server, head)
    assert server.violations == []
    assert isinstance(reply, Reply)
    kinds = [block["type"] for block in reply.blocks]
    assert kinds == ["thinking", "text", "redacted_thinking"]
    assert reply.blocks[0]["thinking"] == "Hm, let me see."
    assert reply.blocks[1]["text"] == "Hello, wörld 🙂!"
    assert (reply.stop_reason, reply.model) == ("end_turn", MODEL)
    for kind, index in (("reasoning", 0), ("text", 1)):
        deltas = [each for each in parts if isinstance(each, PartDelta) and each.kind == kind]
        assert len(deltas) == 4
        assert {each.index for each in deltas} == {index}
    sent = server.requests[0].json
    assert sent["generationConfig"] == {
        "maxOutputTokens": 16_000, "thinkingConfig": {"includeThoughts": True}
    }  # fmt: skip
    assert sent["systemInstruction"] == {"parts": [{"text": "You are a careful clerk."}]}


def test_parallel_calls_have_ids_whether_or_not_the_server_gives_them() -> None:
    given = answer([Turn(text="Look.", tool_uses=TWO)])
    made = answer([Turn(tool_uses=TWO)], replace(HEAD, model=OLD))
    for reply, begin in ((given, "call"), (made, MADE)):
        calls = [block for block in reply.blocks if block["type"] == "tool_use"]
        assert [call["input"] for call in calls] == [{"path": "/"}, {"path": "/tmp"}]
        assert len({call["id"] for call in calls}) == 2
        assert all(call["id"].startswith(begin) for call in calls)
        assert reply.stop_reason == "tool_use"


def test_a_call_is_shown_while_it_comes() -> None:
    with GoogleServer([Turn(tool_uses=TWO[:1])]) as server:
        events = ask(server)
    started = next(each for each in events if isinstance(each, PartStarted))
    delta = next(each for each in events if isinstance(each, PartDelta))
    assert (started.kind, started.tool, started.call_id) == ("tool_input", "ls", "call0x0")
    assert json.loads(delta.text) == {"path": "/"}


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, OLD])
def test_fifty_turns_repeat_their_prefix_byte_for_byte(model: str) -> None:
    """Invariant 5; the server checks that signatures return on their original parts."""
    turn = Turn("Next: naïve 🙂", TWO, thinking="Hm.")
    with GoogleServer(by_reply([turn] * 50)) as server:
        converse(server, 50, replace(HEAD, model=model))
    assert server.violations == []
    bodies = [request.body for request in server.requests]
    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}]}"))


def test_calls_of_another_model_bear_the_documented_signature() -> None:
    conversation = GoogleConversation(HEAD, "google:here")
    conversation.append("user", said("Hello"))
    uses = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "ls", "input": {"path": "/"}}
        for n in (1, 2)
    ]
    thought = {"type": "redacted_thinking", "data": "c2VjcmV0"}  # another API's
    add(conversation, "assistant", thought, *uses)
    add(
        conversation,
        "user",
        {"type": "text", "text": "And now?"},
        *({"type": "tool_result", "tool_use_id": use["id"], "content": "x"} for use in uses),
    )
    sent = json.loads(conversation.body())
    check_request(sent, MODEL)
    parts = sent["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [ANY_SIGNATURE, None]
    assert [next(iter(part)) for part in sent["contents"][2]["parts"]] == [
        "functionResponse", "functionResponse", "text",
    ]  # fmt: skip
    old = GoogleConversation(replace(HEAD, model=OLD), "google:here")
    add(old, "assistant", *uses)
    assert ANY_SIGNATURE.encode() not in old.body()


def test_errors_of_tools_and_pictures() -> None:
    conversation = GoogleConversation(HEAD, "google:here")
    data = "iVBORw0KGgoA" * 400
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    }
    add(conversation, "user", {"type": "text", "text": "See:"}, picture)
    add(conversation, "assistant", {"type": "tool_use", "id": "a1", "name": "ls", "input": {}})
    result = {"type": "tool_result", "tool_use_id": "a1", "content": "no", "is_error": True}
    add(conversation, "user", result)
    sent = json.loads(conversation.body())
    check_request(sent, OLD)
    assert sent["contents"][0]["parts"][1] == {
        "inlineData": {"mimeType": "image/png", "data": data}
    }
    response = sent["contents"][2]["parts"][0]["functionResponse"]
    assert response == {"id": "a1", "name": "ls", "response": {"error": "no"}}


def test_a_picture_without_its_bytes_is_refused_and_adds_nothing() -> None:
    conversation = GoogleConversation(HEAD, "google:here")
    before = conversation.body()
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "a1", "content": [picture]}
    for block in (picture, result):
        with pytest.raises(ValueError, match="needs its bytes; got a source 'url'"):
            add(conversation, "user", block)
    assert conversation.body() == before


@pytest.mark.parametrize("text", ["[]", "{}", '"x"', "[1]", '[{"a": 1}]', "not json", '["\ud800"]'])
def test_an_invalid_message_is_refused_and_adds_nothing(text: str) -> None:
    conversation = GoogleConversation(HEAD, "google:here")
    before = conversation.body()
    with pytest.raises(ValueError, match=r"."):
        conversation.append("user", text)
    assert conversation.body() == before


def test_usage_counts_cached_and_thinking_tokens() -> None:
    usage = {"input_tokens": 900, "cache_read_tokens": 3000, "output_tokens": 20, "thoughts": 30}
    reply = answer([Turn(text="Hi", usage=usage)])
    assert reply.usage == Usage(900, 50, 3000, 0, 30)


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("RECITATION", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("BLOCKED", "refusal"),
        ("SOMETHING_NEW", "refusal"),
    ],
)
def test_why_it_stopped(stop: str, told: str) -> None:
    assert answer([Turn(text="Well", stop_reason=stop)]).stop_reason == told


def test_a_reply_stopped_by_a_filter_runs_no_calls() -> None:
    reply = answer([Turn(text="Well", tool_uses=TWO, stop_reason="refusal")])
    assert [block["type"] for block in reply.blocks] == ["text"]


@pytest.mark.parametrize(
    ("fault", "code", "retryable"),
    [
        (http_error(400, "Unknown name"), "invalid_request", False),
        (http_error(401), "authentication", False),
        (http_error(403), "permission", False),
        (http_error(404, "models/x is not found"), "not_found", False),
        (http_error(429, retry_after="7"), "rate_limited", True),
        (http_error(500), "server_error", True),
        (http_error(503), "overloaded", True),
        (http_error(504), "server_error", True),
        (Fault("status", 302, message="elsewhere"), "invalid_request", False),
        (
            Fault("status", 400, message="API key not valid.", code="API_KEY_INVALID"),
            "authentication",
            False,
        ),
        (
            http_error(400, "The input token count (9) exceeds the maximum number of tokens (5)"),
            "context_window",
            False,
        ),
        (Fault("drop_before_headers"), "connection", True),
        (Fault("drop_mid_stream"), "connection", True),
        (Fault("hang_before_headers"), "stalled", True),
        (Fault("hang_mid_stream"), "stalled", True),
        (Fault("malformed_stream"), "malformed_stream", True),
        (Fault("truncated"), "malformed_stream", True),
        (Fault("error_event", error_type="overloaded_error"), "overloaded", True),
        (Fault("error_event", error_type="rate_limit_error"), "rate_limited", True),
    ],
)
def test_errors_are_mapped_as_everywhere(fault: Fault, code: str, retryable: bool) -> None:
    error = failure([Turn(text="Half", fault=fault)], stall_timeout=0.2)
    assert (error.code, error.retryable) == (code, retryable), error.message
    if code == "rate_limited" and fault.kind == "status":
        assert error.retry_after == 7


def test_a_garbled_call_is_requested_again() -> None:
    error = failure([Turn(tool_uses=[ToolUse("ls", '{"path": ')])])
    assert (error.code, error.retryable) == ("malformed_stream", True)


@pytest.mark.parametrize(
    "args", [["/a"], {"path": float("nan")}, {"path": "\ud83d"}, {"path": {"\udc00": 1}}]
)
def test_an_input_that_cannot_be_stored_is_distinguished(args: Any) -> None:
    """A server that is not Google's may send anything."""
    builder = ReplyBuilder(MODEL, "google:here")
    part = {"functionCall": {"name": "ls", "args": args, "id": "functions.ls:0"}}
    candidate = {"content": {"parts": [part]}, "finishReason": "STOP"}
    events = list(builder.add({"candidates": [candidate]}))
    reply = builder.finish()
    (block,) = reply.blocks
    assert block["input"] == {}
    assert block["id"].startswith(MADE)  # the original id is not valid for every API
    assert set(reply.broken_inputs) == {block["id"]}
    json.dumps([block, reply.broken_inputs], ensure_ascii=False).encode()
    assert isinstance(events[1], PartDelta)
    events[1].text.encode()


@pytest.mark.parametrize(
    "chunk",
    [
        {"candidates": [{"content": {"parts": [{"functionCall": {"args": {}}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": 7}}]}}]},
        {"candidates": [{"content": {"parts": ["text"]}}]},
        {"candidates": [{"content": {"parts": [{"text": 7}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": {"x": 1}}]}}]},
        {"candidates": {"content": 1}},
        {"usageMetadata": {"promptTokenCount": "many"}},
        {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": -5}},
        {"usageMetadata": {"promptTokenCount": 1.5}},
    ],
)
def test_unknown_content_is_a_malformed_stream(chunk: dict[str, Any]) -> None:
    with pytest.raises(ProviderError) as caught:
        list(ReplyBuilder(MODEL, "google:here").add(chunk))
    assert caught.value.code == "malformed_stream"


def test_the_key_is_sent_only_in_a_header_to_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "test-key-of-google"
    echo = Turn(fault=http_error(400, f"you sent {key}"))
    with GoogleServer([echo, Turn(text="Hi")]) as server:
        with pytest.raises(ProviderError) as caught:
            ask(server)
        assert key not in str(caught.value)
        assert server.requests[0].headers["x-goog-api-key"] == key
        monkeypatch.setenv("GOOGLE_API_KEY", "of-the-environment")
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        provider = get_provider("google", ProviderSettings(base_url=server.url))

        async def call() -> Any:
            conversation = provider.conversation(HEAD)
            conversation.append("user", said("Hi"))
            reply = await reply_of(provider, conversation)
            limits = await provider.limits("unknown-model")
            await provider.close()
            return reply, limits

        asyncio.run(call())
    heard = json.dumps([dict(request.headers) for request in server.requests])
    assert "of-the-environment" not in heard
    assert server.keys_seen == {key, "no-key"}
    assert server.models_asked == ["unknown-model"]
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderError) as caught:
        get_provider("google", ProviderSettings())
    assert caught.value.code == "missing_key"
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    assert isinstance(get_provider("google", ProviderSettings()), GoogleProvider)


def test_limits_are_asked_once() -> None:
    models = {"gemini-x": {"inputTokenLimit": 5000, "outputTokenLimit": 700}}

    async def call(server: GoogleServer) -> list[Any]:
        provider = provider_for(server)
        found = [await provider.limits(name) for name in ("gemini-x", "gemini-x", OLD)]
        await provider.close()
        return found

    with GoogleServer([], models=models) as server:
        first, second, known = asyncio.run(call(server))
    assert (first.context_window, first.max_output) == (5000, 700)
    assert first == second
    assert known.context_window == 1_048_576
    assert server.models_asked == ["gemini-x", OLD]


THINKING = [
    (MODEL, {"type": "disabled"}, None, {"thinkingLevel": "minimal"}),
    ("gemini-3.1-pro-preview", {"type": "disabled"}, None, {"thinkingLevel": "low"}),
    (OLD, {"type": "disabled"}, None, {"thinkingBudget": 0}),
    ("gemini-2.5-pro", {"type": "disabled"}, None, {"thinkingBudget": 128}),
    (MODEL, None, "max", {"thinkingLevel": "high"}),
    (OLD, {"type": "adaptive"}, "low", {"includeThoughts": True, "thinkingBudget": 1024}),
    ("gemma-4", None, "low", None),
]


@pytest.mark.parametrize(("model", "thinking", "effort", "wanted"), THINKING)
def test_thinking_uses_the_parameters_of_the_model_generation(
    model: str, thinking: Any, effort: str | None, wanted: Any
) -> None:
    head = replace(HEAD, model=model, thinking=thinking, effort=effort)
    conversation = GoogleConversation(head, "google:here")
    conversation.append("user", said("Hi"))
    sent = json.loads(conversation.body())
    check_request(sent, model)
    assert sent["generationConfig"].get("thinkingConfig") == wanted


def test_schemas_are_reduced_to_the_parts_that_the_api_accepts() -> None:
    schema = {
        "type": "object",
        "$schema": "x",
        "properties": {
            "kind": {"const": "a"},
            "flag": {"enum": [True, None]},
            "size": {"type": "integer", "exclusiveMinimum": 0, "default": 3},
            "url": {"type": "string", "format": "uri", "pattern": "^h"},
            "either": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "node": {"$ref": "#/definitions/Node"},
            "all": {"allOf": [{"type": "string", "minLength": 3}]},
            "any": True,
        },
        "definitions": {"Node": {"type": "object", "additionalProperties": {"not": {}}}},
        "required": ["kind", "gone"],
        "patternProperties": {"^x": {}},
    }
    head = replace(HEAD, tools=({**LS, "input_schema": schema},))
    conversation = GoogleConversation(head, "google:here")
    conversation.append("user", said("Hi"))
    sent = json.loads(conversation.body())
    check_request(sent, MODEL)
    taken = sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
    assert taken["properties"]["kind"] == {"enum": ["a"], "type": "string"}
    assert taken["properties"]["either"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert taken["properties"]["node"] == {"$ref": "#/$defs/Node"}
    assert taken["required"] == ["kind"]
    assert parameters({"type": "object", "properties": {}}) is None
