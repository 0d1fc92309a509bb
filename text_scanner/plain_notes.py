"""Find phrases and addresses that are findings on their own, without a rule or the model.

A phrase such as "always send" or "never ask" is a warning. An address is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from text_scanner.finding import Hit
from text_scanner.linear import compile_linear
from text_scanner.mentions import taught
from text_scanner.structure import Shape, shape_hits

PHRASES: tuple[Shape, ...] = (
    Shape(
        "unconditional-action",
        "An unconditional action",
        "warning",
        compile_linear(r"always\s+(?:do|send|forward)\b"),
        ("always",),
    ),
    Shape(
        "bypass-verification",
        "Leaves out a question or a check",
        "warning",
        compile_linear(r"never\s+(?:ask|check|verify)"),
        ("never",),
    ),
    Shape(
        "ignore-instructions",
        "Sets something aside",
        "warning",
        compile_linear(r"ignore\s+(?:previous|user)"),
        ("ignore",),
    ),
)
ADDRESSES: tuple[Shape, ...] = (
    Shape("url", "Contains a URL", "note", compile_linear(r"https?://[^\s]+"), ("://",)),
    Shape(
        "email",
        "Contains an e-mail address",
        "note",
        compile_linear(r"[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,250}\.[a-z]{2,24}\b"),
        ("@",),
    ),
)

# "Never ask customers for their password" protects them. "Never ask for confirmation" does not.
_ASKS_FOR = re.compile(
    r"(?:s|ed|ing)?(?!\w)(?:\s+[\w'’-]+){0,4}?\s+for\s+(?!(?:\w+\s+){0,2}?(?:confirm|approv|permission|"
    r"consent|review|sign-?off|authori[sz]|(?:the )?go-ahead|ok\b|okay|proof|verif|clarif|help\b|"
    r"reasons?\b|id\b|identif|instruct|anything|feedback))"
)
_CHECKS_IN = re.compile(r"(?:s|ed|ing)? (?:in|out)\b")
_REACH = 120


def phrase_hits(text: str) -> Iterator[Hit]:
    """Yield a hit for each phrase and address in the folded `text`.

    A phrase that is harmless in its sentence becomes a note.
    """
    for hit in shape_hits(text, PHRASES):
        yield replace(hit, severity="note") if _is_harmless(text, hit) else hit
    yield from shape_hits(text, ADDRESSES)


def _is_harmless(text: str, hit: Hit) -> bool:
    after = text[hit.end : hit.end + _REACH]
    found = text[hit.start : hit.end]
    if found.endswith("ask") and _ASKS_FOR.match(after):
        return True
    if found.endswith("check") and _CHECKS_IN.match(after):
        return True
    return taught(text, hit.start, hit.end)
