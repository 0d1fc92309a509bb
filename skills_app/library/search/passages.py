"""The parts of a description and of a SKILL.md: its purpose, when to use it, and exclusions."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"[^.!?\n;]+(?:\.(?=\w)[^.!?\n;]*)*[.!?;]*")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_NOT_FOR = re.compile(
    r"\b(?:do(?:es)? not|don['’]t|never|not)"
    r" (?:use|for|intended|meant|suitable|trigger|apply|when|if)\b"
    r"|\b(?:skip|avoid) (?:it|this|when|for|if)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\buse (?:this |it )?(?:skill )?(?:when|for|if|to)\b|\bwhen(?:ever)? (?:the |a )?users?\b"
    r"|\btriggers?\b|\bwhen to use\b|\buseful (?:for|when)\b|\bask(?:s|ed)? (?:to|for|about)\b",
    re.IGNORECASE,
)
_WHEN_HEADING = re.compile(
    r"(?:when to (?:use|apply|activate)|use cases?|triggers?|overview|purpose"
    r"|what (?:this|it) does|capabilities)\b",
    re.IGNORECASE,
)
_NOT_HEADING = re.compile(r"\bnot (?:to )?use\b|\bwhen not\b|\bout of scope\b", re.IGNORECASE)

SECTION = 3_000
"""Characters of one section that say when to use a skill."""


def split_description(text: str) -> tuple[list[str], list[str]]:
    """Return (a skill's purpose, when to use it) in sentences, without exclusions."""
    said: list[str] = []
    when: list[str] = []
    for sentence in wanted_sentences(text):
        (when if _WHEN.search(sentence) else said).append(sentence)
    return said, when


def wanted_sentences(text: str) -> list[str]:
    """Return the sentences of a text without exclusions ("not for …")."""
    return [sentence for sentence in _SENTENCE.findall(text) if not _NOT_FOR.search(sentence)]


class Sections:
    """A body by its headings.

    `headings`: all of them; `when`: sentences that say when to use the skill; `text`: the rest,
    without sections such as "When not to use".
    """

    def __init__(self, body: str) -> None:
        # Lines of code keep their place, but a comment in them is not a heading.
        outline = _CODE.sub(lambda code: " " * len(code[0]), body)
        found = list(_HEADING.finditer(outline))
        self.headings = [heading[1] for heading in found]
        self.when: list[str] = []
        parts = [body[: found[0].start()] if found else body]
        for at, heading in enumerate(found):
            end = found[at + 1].start() if at + 1 < len(found) else len(body)
            if _NOT_HEADING.search(heading[1]):
                continue
            parts.append(body[heading.start() : end])
            if _WHEN_HEADING.match(heading[1]):
                self.when += wanted_sentences(body[heading.end() : end][:SECTION])
        self.text = "\n".join(parts)
