"""Vel's own guardrails: the texts that they match, and the texts that they do not match."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.features.guardrails.public import GuardContext
from agents.features.guardrails.registry import MaxLength, Secrets
from agents.telemetry.spans import MASK, mask_secrets

KEYS = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_aa",
    "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz",
    "glpat-AbCdEfGhIjKlMnOpQrSt",
    "xoxb-123456789012-abcdefghijkl",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "npm_0123456789abcdefghijklmnopqrstuvwxyz",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
]
INNOCENT = [
    "Use sk-learn and pandas; the task-force met on 2026-11-22.",
    "3f786850e387550fdab836ed7e6dc881de23001b is the commit.",
    "01m81hmt9frr50mckc399s6qk1 is the run.",
    "postgresql://reader@db.example.org/shop",
    "https://example.org:8443/path@2x.png",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBg",
]
CONTEXT = GuardContext("run", "thread", 1, "agent", 1, is_final=True)
AWAY = GuardContext("run", "thread", 1, "agent", 1, leaves_machine=True)


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_masked_at_any_position(key: str) -> None:
    for text in (key, f"KEY={key}", f'"{key}",', f"({key})\nnext", f"`{key}`"):
        masked = mask_secrets(text)
        assert MASK in masked
        assert key[12:] not in masked


def test_private_keys_and_passwords_in_urls_are_masked() -> None:
    pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
    assert mask_secrets(f"a {pem} b") == f"a {MASK} b"
    assert mask_secrets("-----BEGIN PRIVATE KEY-----\ncut off") == MASK
    assert (
        mask_secrets("postgresql://reader:hunter2@db/shop") == f"postgresql://reader:{MASK}@db/shop"
    )


@pytest.mark.parametrize("text", INNOCENT)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "given",
    [
        {"message": f"the key is {KEYS[0]}"},
        {"rows": [{"cell": [1, KEYS[3]]}]},
        {KEYS[4]: 1},
    ],
)
def test_calls_that_send_a_key_away_are_blocked(given: dict[str, Any]) -> None:
    secrets = Secrets()
    assert secrets.check_tool_call(AWAY, "send", given).action == "block"
    assert secrets.check_tool_call(CONTEXT, "write_file", given).action == "allow"


HOSTILE = [
    "sk-",
    "sk-a ",
    "eyJaaaaaaaaaa-",
    "eyJaaaaaaaaaa.eyJaaaaaaaaaa-",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN A",
    "-----BEGIN PRIVATE KEY----------END A",
    "a://b:",
    "a:/@",
    "a.",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_masking_stays_linear(piece: str) -> None:
    """Texts chosen to make these expressions slow; the limit is of processor time."""
    text = piece * (400_000 // len(piece))
    start = time.thread_time()
    mask_secrets(text)
    assert time.thread_time() - start < 2.0  # measured: 0.4 at most; quadratic is minutes


def test_only_final_answers_have_a_length() -> None:
    between = GuardContext("run", "thread", 1, "agent", 1)
    guardrail = MaxLength()
    assert guardrail.check_output(CONTEXT, "x" * 20_000).action == "allow"
    assert guardrail.check_output(CONTEXT, "x" * 20_001).action == "block"
    assert guardrail.check_output(between, "x" * 20_001).action == "allow"
