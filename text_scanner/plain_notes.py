"""The five patterns of the specification: worth a check, but not an alarm on their own."""

from __future__ import annotations

from text_scanner.linear import compile_linear
from text_scanner.structure import Shape

NOTES: tuple[Shape, ...] = (
    Shape(
        "unconditional-action",
        "An unconditional action",
        "note",
        compile_linear(r"always\s+(?:do|send|forward)\b"),
        ("always",),
    ),
    Shape(
        "bypass-verification",
        "Leaves out a question or a check",
        "note",
        compile_linear(r"never\s+(?:ask|check|verify)"),
        ("never",),
    ),
    Shape(
        "ignore-instructions",
        "Sets something aside",
        "note",
        compile_linear(r"ignore\s+(?:previous|user)"),
        ("ignore",),
    ),
    Shape("url", "Contains a URL", "note", compile_linear(r"https?://[^\s]+"), ("://",)),
    Shape(
        "email",
        "Contains an e-mail address",
        "note",
        compile_linear(r"[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,250}\.[a-z]{2,24}\b"),
        ("@",),
    ),
)
