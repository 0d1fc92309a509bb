"""Access to the MCP endpoint of a served site, and invalid requests."""

from __future__ import annotations

import socket
from typing import Any

import httpx2
import pytest

from tests.agents.features.mcp_server.serving import Served, call, message, messages_in
from tests.support.hang import HANG
from tests.support.runs import wait_until

INTERNALS = ("Traceback", "pydantic", "django", "site-packages", "SELECT")


def error_in(answer: Any) -> dict[str, Any]:
    found = answer.json()["error"]
    assert not any(word in answer.text for word in INTERNALS), answer.text
    return dict(found)


@pytest.mark.slow
def test_a_token_is_needed_and_no_cookie_takes_its_place(served: Served) -> None:
    session = served.site.do("sign_in", user="olga")
    for headers in (
        {},
        {"Cookie": f"sessionid={session}"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer vel_unknown"},
        {"Authorization": "Basic b2xnYTpvbGdh"},
        {"Authorization": "Bearer vel_\u00e4"},
    ):
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = served.post(message("tools/list"), **encoded)
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == "Bearer"
        error_in(answer)
    assert served.post(message("tools/list"), served.token()).status_code == 200


def test_a_token_is_limited_to_its_scopes(served: Served) -> None:
    def tools(*scopes: str) -> set[str]:
        found = messages_in(served.post(message("tools/list"), served.token("olga", *scopes)))
        return {tool["name"] for tool in found[-1]["result"]["tools"]}

    assert tools("read") == {"vel_get_run"}
    assert tools("run") == {"vel_cancel_run"}
    assert tools("read", "run") == tools("mcp") > {"vel_get_run", "vel_cancel_run", "echo"}
    answer = served.post(message("tools/list"), served.token("olga", "approve", "manage"))
    assert answer.status_code == 403
    assert "'mcp'" in error_in(answer)["message"]
    for name in ("echo", "unoffered"):  # the same answer: it does not show which tools exist
        for scope in ("read", "run"):
            refused = served.call(served.token("olga", scope), name, message="Hi")
            assert refused["isError"]
            assert "insufficient_scope" in refused["content"][0]["text"]


def test_a_token_for_this_door_opens_no_other(served: Served) -> None:
    token = served.token()
    site = served.site.url
    sign = {"Authorization": f"Token {token}"}
    assert httpx2.get(f"{site}/api/v1/agents", headers=sign).status_code == 403
    assert httpx2.get(f"{site}/api/v1/runs", headers=sign).status_code == 403


def test_only_post_is_answered(served: Served) -> None:
    sign = {"Authorization": f"Bearer {served.token()}", "Accept": "text/event-stream"}
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        answer = httpx2.request(method, served.url, headers=sign)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert "access-control-allow-origin" not in answer.headers
    assert served.post(message("ping"), served.token(), path="/").status_code == 200


def test_pages_of_other_sites_and_other_names_of_this_machine_are_refused(served: Served) -> None:
    token = served.token()
    own = served.site.url
    for origin in ("https://evil.example", "null", "http://localhost:1", f"{own}.evil.example"):
        answer = served.post(message("ping"), token, Origin=origin)
        assert answer.status_code == 403, origin
    for origin in (own, "https://a.trusted.example"):
        assert served.post(message("ping"), token, Origin=origin).status_code == 200, origin
    assert served.post(message("ping"), token, Host="rebound.example").status_code == 400


def test_an_invalid_request_is_refused_briefly(served: Served) -> None:
    token = served.token()
    for body in (
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": %s}}'
        % (b"[" * 300 + b"]" * 300),
        b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
        b'"ping"',
        [message("ping"), message("ping", id=2)],
        message("ping", id="x" * 10_000),
        message("ping", id=10**300),
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ):
        answer = served.post(body, token)
        assert answer.status_code == 400, body
        assert len(answer.content) < 2_000
        error_in(answer)
    for asked, code in (
        (message("no/such"), -32601),
        (message("tools/call", name=7), -32602),
        (message("tools/call", name="echo", arguments=[1]), -32602),
        (message("tools/list", cursor="../../etc"), -32602),
        (message("tools/call", name="\ud800", arguments={}), -32602),
    ):
        answer = served.post(asked, token)
        if answer.status_code == 200:
            assert messages_in(answer)[-1]["error"]["code"] == code, asked
        else:
            assert answer.status_code == 400, asked
            error_in(answer)


@pytest.mark.slow
def test_arguments_that_do_not_fit_start_nothing(served: Served) -> None:
    token = served.token()
    newest = served.site.do("newest_run") if served.call(token, "echo", message="Hi") else ""
    for arguments in (
        {},
        {"message": ""},
        {"message": 7},
        {"message": "a\x00b"},
        {"message": "x" * 1_000_001},
        {"message": "Hi", "thread": "../x"},
        {"message": "Hi", "thread": "a\x00"},
        {"message": "Hi", "thread": "0" * 26},
        {"message": "Hi", "wait_seconds": 10**9},
        {"message": "Hi", "wait_seconds": -1},
        {"message": "Hi", "wait_seconds": True},
        {"message": "Hi", "context": {"a b": 1}},
        {"message": "Hi", "context": {"a": {"deep": []}}},
        {"message": "Hi", "output_schema": {"type": "no such"}},
        {"message": "Hi", "idempotency_key": ""},
        {"message": "Hi", "idempotency_key": "k" * 201},
        {"message": "Hi", "owner": "peter"},
        {"message": "Hi", "\u202eevil": "x" * 10_000},
    ):
        refused = served.call(token, "echo", **arguments)
        assert refused["isError"], arguments
        text = refused["content"][0]["text"]
        assert len(text) < 1_500
        assert "\u202e" not in text
        assert not any(word in text for word in INTERNALS), text
    assert served.site.do("newest_run") == newest


def test_bodies_have_a_limit_however_they_come(served: Served) -> None:
    token = served.token()
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "%s"}}'
    answer = served.post(body % (b"x" * 5_000_000), token)
    assert answer.status_code == 413
    # In chunks, without a known length.
    host, port = "127.0.0.1", served.site.port
    with socket.create_connection((host, port), timeout=HANG) as connection:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head.encode())
        chunk = b"%x\r\n%s\r\n" % (500_000, b"x" * 500_000)
        for _ in range(10):
            connection.sendall(chunk)
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_runs_and_threads_of_others_are_unreachable(served: Served) -> None:
    mine, others = served.token("olga"), served.token("peter")
    begun = served.call(others, "asks", message="Go")["structuredContent"]
    elsewhere = served.site.do("make_run", owner="olga")
    for run in (begun["run"], elsewhere):
        for tool in ("vel_get_run", "vel_cancel_run"):
            refused = served.call(mine, tool, run=run)
            assert "unknown_run" in refused["content"][0]["text"]
    for thread in (begun["thread"], served.site.do("run", run=elsewhere)["thread"]):
        refused = served.call(mine, "asks", message="And?", thread=thread)
        assert "unknown_thread" in refused["content"][0]["text"]
    assert served.site.do("run", run=begun["run"])["status"] == "waiting"
    assert not served.call(others, "vel_cancel_run", run=begun["run"])["isError"]


def test_only_its_sender_withdraws_a_request(served: Served) -> None:
    token = served.token()
    session, other = (_session(served, token) for _ in range(2))
    begun = _begin(served, token, session)
    again = _begin(served, token, session)
    assert again == begun  # the same request, repeated
    assert _begin(served, token, other) != begun
    for by, within in (
        (served.token(), session),  # another token, even of the same user
        (served.token("peter"), session),
        (token, "made-up"),
        (token, ""),
    ):
        assert _take_back(served, by, within, 7).status_code == 202
    for wrong in ("7", 8, None, [7], True):
        _take_back(served, token, session, wrong)
    assert served.site.do("run", run=begun)["cancel_requested"] is False
    assert served.site.do("run", run=begun)["status"] != "cancelled"
    _take_back(served, token, session, 7)
    wait_until(lambda: served.site.do("run", run=begun)["status"] == "cancelled", "its end")


def _session(served: Served, token: str) -> str:
    about = {"name": "test", "version": "1"}
    hello = message("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
    answer = served.post(hello, token)
    assert messages_in(answer)[-1]["result"]["protocolVersion"] == "2025-06-18"
    return str(answer.headers["mcp-session-id"])


def _begin(served: Served, token: str, session: str) -> str:
    asked = call("slow", id=7, message="Wait", wait_seconds=0)
    answer = served.post(asked, token, **{"Mcp-Session-Id": session})
    return str(messages_in(answer)[-1]["result"]["structuredContent"]["run"])


def _take_back(served: Served, token: str, session: str, request_id: object) -> Any:
    params = {"requestId": request_id}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    headers = {"Mcp-Session-Id": session} if session else {}
    return served.post(note, token, **headers)


@pytest.mark.parametrize("session", ["x" * 500, "a b", "\x7f"])
def test_an_unknown_session_is_refused(served: Served, session: str) -> None:
    answer = served.post(message("ping"), served.token(), **{"Mcp-Session-Id": session})
    assert answer.status_code == 400
