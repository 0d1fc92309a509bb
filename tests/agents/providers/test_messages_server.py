"""The loopback Messages API refuses the same requests as the real one."""

from __future__ import annotations

import copy
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from tests.support.messages_api import MessagesServer
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import Request, ToolUse, Turn

HEADERS = {
    "x-api-key": "key",
    "anthropic-version": "2026-10-21",
    "content-type": "application/json",
}
MARK = {"cache_control": {"type": "ephemeral"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "ls", "input": {}} | fields


def result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [user(text("hi"))]} | fields


def talk(*messages: dict[str, Any]) -> dict[str, Any]:
    return request(messages=list(messages))


def tool(name: str = "ls", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}} | fields


def post(
    server: MessagesServer, body: dict[str, Any] | bytes, headers: dict[str, str] = HEADERS
) -> tuple[int, dict[str, Any]]:
    """Send one request that does not stream; return the status and the JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    http_request = HttpRequest(f"{server.url}/v1/messages", data, headers)
    try:
        with urlopen(http_request) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


LOOP = [user(text("hi")), assistant(use("a"), use("b"))]

GOOD = [
    request(),
    talk({"role": "user", "content": "hi"}),
    request(system="be kind", tools=[tool()], stream=False),
    request(
        system=[text("be kind") | MARK], tools=[tool() | MARK], cache_control={"type": "ephemeral"}
    ),
    talk(*LOOP, user(result("b"), result("a"), text("and a note"))),
    talk(*LOOP, user(result("a", [text("x")]), result("b", ""))),
    request(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000),
    request(output_config={"effort": "xhigh"}, thinking={"type": "between_tools"}),
]

BAD = [
    (request(surprise=1), "surprise: Extra inputs are not permitted"),
    (request(temperature=1.0), "temperature: Extra inputs are not permitted"),
    ({"max_tokens": 1, "messages": []}, "model: Field required"),
    ({"model": "m", "messages": []}, "max_tokens: Field required"),
    (request(max_tokens=0), "max_tokens: Input should be greater"),
    (talk(), "at least one message is required"),
    (talk(assistant(text("hi"))), 'first message must use the "user" role'),
    (talk(user(text("a")), user(text("b"))), "roles must alternate"),
    (talk(user()), "non-empty content"),
    (talk(user(text(""))), "text content blocks must be non-empty"),
    (talk(user(text(" \n"))), "must contain non-whitespace text"),
    (talk(user(text("a") | {"x": 1})), "messages.0.content.0.text.x: Extra inputs"),
    (talk(user(use("a"))), "Input tag 'tool_use'"),
    (talk(user(text("a")), assistant(text("b"))), "must end with a user message"),
    (talk(*LOOP), "must end with a user message"),
    (talk(*LOOP, user(text("x"))), "without `tool_result` blocks immediately after: a, b"),
    (talk(*LOOP, user(result("a"))), "immediately after: b."),
    (talk(*LOOP, user(text("x"), result("a"), result("b"))), "Did not find 2"),
    (talk(*LOOP, user(result("a"), text("x"), result("b"))), "Did not find 2"),
    (talk(*LOOP, user(result("a"), result("b"), result("c"))), "unexpected `tool_use_id`"),
    (talk(*LOOP, user(result("a"), result("b"), result("a"))), "multiple `tool_result`"),
    (talk(user(result("a"))), "unexpected `tool_use_id`"),
    (talk(LOOP[0], assistant(use("a"), use("a")), user(result("a"))), "must be unique"),
    (talk(LOOP[0], assistant(use("a!")), user(result("a!"))), "should match pattern"),
    (talk(LOOP[0], assistant(use("a", input=[])), user(result("a"))), "valid dictionary"),
    (talk(*LOOP, user(result("a", [text("")]), result("b"))), "must be non-empty"),
    (request(tools=[tool(), tool()]), "Tool names must be unique"),
    (request(tools=[tool("a b")]), "tools.0.custom.name: String should match pattern"),
    (request(tools=[tool("x" * 129)]), "tools.0.custom.name: String should match pattern"),
    (request(tools=[tool(input_schema={"type": "string"})]), "input_schema.type: Input should be"),
    (request(tools=[{"name": "ls"}]), "input_schema: Field required"),
    (request(tools=[tool(effect="read")]), "tools.0.custom.effect: Extra inputs"),
    (request(tools=[tool(str(n)) | MARK for n in range(5)]), "A maximum of 4 blocks"),
    (request(cache_control={"type": "for ever"}), "cache_control: Input should be"),
    (request(thinking={"type": "enabled", "budget_tokens": 99}), "at least 1024"),
    (request(thinking={"type": "enabled", "budget_tokens": 1024}), "must be greater than"),
    (request(thinking={"type": "much"}), "thinking: Input tag 'much'"),
    (request(output_config={"effort": "huge"}), "output_config.effort"),
    (
        talk(LOOP[0], assistant({"type": "thinking", "thinking": "x"}), user(text("y"))),
        "signature: Field required",
    ),
]


@pytest.mark.parametrize("body", GOOD)
def test_requests_in_order_are_answered(body: dict[str, Any]) -> None:
    with MessagesServer([Turn("hello")]) as server:
        status, reply = post(server, body)
    assert (status, server.violations) == (200, [])
    assert reply["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize(("body", "message"), BAD, ids=[message for _, message in BAD])
def test_requests_out_of_order_are_refused(body: dict[str, Any], message: str) -> None:
    with MessagesServer([Turn("hello")]) as server:
        status, reply = post(server, body)
    assert status == 400
    assert reply["error"]["type"] == "invalid_request_error"
    assert message in reply["error"]["message"]
    assert server.violations == [reply["error"]["message"]]


def test_sampling_needs_the_old_version_of_the_api() -> None:
    with MessagesServer([Turn("hello")]) as server:
        old = HEADERS | {"anthropic-version": "2023-06-01"}
        assert post(server, request(temperature=1.0), old)[0] == 200


@pytest.mark.parametrize(
    ("missing", "status"), [("x-api-key", 401), ("anthropic-version", 400), ("content-type", 400)]
)
def test_headers_are_required(missing: str, status: int) -> None:
    headers = {name: value for name, value in HEADERS.items() if name != missing}
    with MessagesServer([Turn("hello")]) as server:
        assert post(server, request(), headers)[0] == status
    assert len(server.violations) == 1


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "\\ud800"}'])
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    with MessagesServer([Turn("hello")]) as server:
        status, reply = post(server, body)
    assert status == 400
    assert "not valid JSON" in reply["error"]["message"]


def test_more_requests_than_turns_are_a_violation() -> None:
    with MessagesServer([Turn("hello")]) as server:
        assert [post(server, request())[0] for _ in range(2)] == [200, 400]
    assert "after the last of 1 scripted turns" in server.violations[0]


def test_thinking_is_valid_only_unchanged_and_at_its_original_position() -> None:
    with MessagesServer(
        [Turn(tool_uses=[ToolUse("ls")], thinking="hm"), *[Turn("x")] * 9]
    ) as server:
        first = request(system="be kind", tools=[tool()])
        blocks = post(server, first)[1]["content"]
        call_id = blocks[1]["id"]
        good = first | {"messages": [*first["messages"], assistant(*blocks), user(result(call_id))]}
        assert post(server, good)[0] == 200

        def refused(change: dict[str, Any]) -> str:
            status, reply = post(server, change)
            assert status == 400
            message: str = reply["error"]["message"]
            return message

        altered = copy.deepcopy(good)
        altered["messages"][1]["content"][0]["thinking"] = "hm!"
        assert "Invalid `signature`" in refused(altered)
        assert "bound to a different conversation" in refused(good | {"system": "be unkind"})
        assert "bound to a different conversation" in refused(good | {"tools": []})
        marked = copy.deepcopy(good)
        marked["messages"][0]["content"][0] |= MARK
        assert post(server, marked)[0] == 200
        doubled = copy.deepcopy(good)
        doubled["messages"][1]["content"].insert(0, blocks[0])
        assert "bound to a different" in refused(doubled)
        without = copy.deepcopy(good)
        del without["messages"][1]["content"][0]
        assert post(server, without)[0] == 200


def sent(number: int, body: str) -> Request:
    return Request(number, {}, body.encode())


def test_the_prefix_check_sees_every_change_but_cache_marks() -> None:
    one = '{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}'
    two = one.replace("]}]}", ']},{"role":"assistant","content":[{"x":"{,}[ ]"}]}]}')
    assert_prefix_stable([sent(0, one), sent(1, two)])
    mark = '"text":"a","cache_control":{"type":"ephemeral"}}'
    assert_prefix_stable([sent(0, one.replace('"text":"a"}', mark)), sent(1, two)])
    assert_prefix_stable([sent(0, one), sent(1, one.replace('"a"}', '"a"},{"b":1}'))])
    for change in (
        two.replace('"s"', '"t"'),
        two.replace('"a"', '"b"'),
        two.replace('"type":"text"', '"type": "text"'),
        two.replace('{"system"', '{"tools":[],"system"'),
        two.replace('"system":"s",', ""),
        '{"system":"s","messages":[]}',
    ):
        with pytest.raises(AssertionError):
            assert_prefix_stable([sent(0, one), sent(1, change)])
