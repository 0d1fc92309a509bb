"""A test of a key: one request, one line, and no part of the key in it."""

from __future__ import annotations

import json
from urllib.parse import quote_plus

import pytest

from agents.providers.key_check import LONGEST_MESSAGE, MAX_BYTES, check_key
from tests.agents.features.provider_keys.servers import models_server

KEY = "sk-proj-" + "m3P/" * 10 + "ABCD"


@pytest.mark.parametrize(
    ("maker", "base", "path"),
    [
        ("anthropic", "", "/v1/models?limit=1"),
        ("openai", "/v1/", "/v1/models"),
        ("google", "/", "/v1beta/models?pageSize=1"),
    ],
)
def test_each_maker_is_asked_for_its_models_with_the_key(maker: str, base: str, path: str) -> None:
    with models_server(KEY) as server:
        assert check_key(maker, server.url + base, KEY).works
        assert not check_key(maker, server.url + base, "another-key").works
    assert [asked for asked, _ in server.asked] == [path, path]


@pytest.mark.parametrize(
    "echo", [KEY, KEY[:9] + "***", quote_plus(KEY), f'"{KEY[3:20]}"', KEY[-6:]]
)
def test_a_server_that_repeats_a_part_of_the_key_is_not_quoted(echo: str) -> None:
    body = json.dumps({"error": {"message": f"Incorrect key: {echo} is wrong"}}).encode()
    with models_server(KEY) as server:
        server.answer = (401, {}, body)
        found = check_key("openai", server.url, KEY)
    assert found.text == f"{server.url} refused the key (HTTP 401): Incorrect key: (key) is wrong"


def test_a_redirect_is_not_followed() -> None:
    with models_server(KEY) as server, models_server(KEY) as other:
        server.answer = (302, {"location": other.url}, b"")
        found = check_key("openai", server.url, KEY)
    assert not found.works
    assert "redirects" in found.text
    assert other.asked == []


def test_a_message_is_one_short_line_without_hidden_characters() -> None:
    text = "a\n\x1b[2Jb\u202e<b>" + "long " * 1000
    with models_server(KEY) as server:
        server.answer = (500, {}, json.dumps({"error": text}).encode())
        found = check_key("openai", server.url, KEY)
    assert len(found.message) <= LONGEST_MESSAGE
    assert not {"\n", "\x1b", "\u202e"} & {*found.text}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, b"<html>", "so the key was not checked"),
        (429, b'[{"error": {"message": "slow down"}}]', "answered with HTTP 429: slow down"),
        (500, b"[" * 100_000, "answered with HTTP 500."),
        (403, b'{"error": {"message": 7}}', "refused the key (HTTP 403)."),
        (500, b"x" * 3 * MAX_BYTES, "answered with HTTP 500."),
    ],
)
def test_other_answers_are_reported(status: int, body: bytes, expected: str) -> None:
    with models_server(KEY) as server:
        server.answer = (status, {}, body)
        found = check_key("anthropic", server.url, KEY)
    assert not found.works
    assert expected in found.text


def test_a_server_that_is_away_is_reported() -> None:
    with models_server(KEY) as server:
        url = server.url
    found = check_key("openai", url, KEY)
    assert not found.works
    assert found.text.startswith(f"{url} gave no answer: ")
