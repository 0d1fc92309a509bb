"""Helpers of the tests that type at the prompt of a session."""

from __future__ import annotations

from tests.velproject.command import Terminal, Vel

READY = "\x1b[?2004h"
"""The prompt turns bracketed paste on."""
ECHO = ("--provider", "scripted", "--model", "echo")


def prompted(vel: Vel, *flags: str, **environment: str) -> Terminal:
    terminal = Terminal(vel, *(flags or ECHO), **environment)  # type: ignore[arg-type]
    terminal.expect(READY)
    return terminal


def messages(vel: Vel) -> list[object]:
    rows = vel.stored("SELECT content FROM agents_message WHERE role = 'user' ORDER BY id")
    return [row["content"] for row in rows]


def told(text: str) -> str:
    return f'[{{"type":"text","text":"{text}"}}]'


def paste(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


def leave(terminal: Terminal, code: int = 0) -> None:
    terminal.type("\x04")
    assert terminal.finish() == code
