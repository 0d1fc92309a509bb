"""Distinguish an attack from a text that quotes or describes one. The latter becomes a note.

Only the text around the match is examined, not the whole document: either the match is in quotation
marks next to words of teaching or testing, or the sentence describes what attackers do.
"""

# Long expressions stay on one line each, so that they can be searched for.
# ruff: noqa: E501

from __future__ import annotations

import re
from dataclasses import replace

from text_scanner.clauses import Word, sentences
from text_scanner.concepts import C
from text_scanner.intent import Match

_TEACH = int(C.TEACH | C.ATTACKER | C.REFUSE)
_ATTACKER = int(C.ATTACKER)
_REFUSE = int(C.REFUSE)
_MODAL = int(C.MODAL)
_REACH = 300
_LEAD_REACH = 700
# Words that tell the reader to act on the quoted text after all.
_COMPLY = re.compile(
    r"\b(?:do so|do it|do this|follow (?:it|them|this|that|these)|obey|comply|execute (?:it|this|them)|"
    r"apply (?:it|this|them)|act on (?:it|this)|carry (?:it|this|them) out|is your|is now|are now in force|"
    r"applies to you|must be followed|take effect|in force|for you)\b"
)
_NOT = re.compile(r"\b(?:not|never|n't|do not|don't|refuse to)\s+(?:\w+\s+)?$")
_THEREFORE = re.compile(
    r"[;:]|\b(?:so|therefore|hence|thus|instead|but you|you should|now|please)\b|\n\n"
)
_TEACH_LINE = re.compile(
    r"\b(?:attacks?|attackers?|injections?|phishing|malicious|scams?|fraud|examples?|detect\w*|red flags?|"
    r"warning signs?|suspicious|training|test (?:cases?|strings?|inputs?)|payloads?|jailbreaks?|adversarial|"
    r"beware|look out|watch (?:out|for)|patterns?|phrases?|untrusted|social engineering|angriff\w*|beispiel\w*|"
    r"reject\w*|block\w*|flag\w*|scanner|fixtures?|poisoning|do not|never|don't|avoid|bad|wrong|vulnerab\w*)\b"
)


def mentioned(text: str, match: Match, sentence: list[Word]) -> bool:
    """Return whether the text at `match` quotes or describes an attack and is not an attack itself.

    `text` must be folded. `sentence` has the known words around the match.
    """
    quote = _quote_around(text, match.start, match.end)
    if quote is not None:
        return _taught(text, quote, sentence)
    return _attackers_do(text, match, sentence)


def taught(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] is a quotation next to words of teaching or testing.

    `text` must be folded.
    """
    quote = _quote_around(text, start, end)
    if quote is None:
        return False
    low = text.rfind("\n\n", max(0, start - _REACH), start) + 1 or max(0, start - _REACH)
    high = text.find("\n\n", end, end + _REACH)
    around = text[low : high if high >= 0 else end + _REACH]
    words = [
        replace(word, start=word.start + low, end=word.end + low)
        for sentence in sentences(around)
        for word in sentence
    ]
    return _taught(text, quote, words)


def _taught(text: str, quote: tuple[int, int], sentence: list[Word]) -> bool:
    opened, closed = quote
    after = text[closed : closed + 140]
    for found in _COMPLY.finditer(after):
        if not _NOT.search(after[: found.start()]):
            return False
    for word in sentence:
        if word.classes & _TEACH and (word.end <= opened or word.start >= closed):
            return True
    start = max(0, opened - _REACH)
    same_line = text[text.rfind("\n", start, opened) + 1 : opened]
    return bool(_TEACH_LINE.search(same_line) or _TEACH_LINE.search(_lead(text, opened)))


def _lead(text: str, at: int) -> str:
    """Return the title of the list at `at`: the nearest heading or line with a final colon above.

    Returns "" if there is none.
    """
    for line in reversed(text[max(0, at - _LEAD_REACH) : at].split("\n")[:-1]):
        stripped = line.strip()
        if stripped.startswith("#") or stripped.endswith((":", ":**")):
            return stripped
    return ""


def _attackers_do(text: str, match: Match, sentence: list[Word]) -> bool:
    refused = any(
        word.classes & _REFUSE and word.start >= match.end - 1 for word in sentence
    ) or bool(_REFUSED.match(text[match.end : match.end + 160]))
    subject: Word | None = None
    for word in sentence:
        if word.start >= match.start and word not in match.words:
            break
        if word.classes & _ATTACKER and word.start <= match.start:
            subject = word
        elif (
            subject is not None
            and word.classes & _MODAL
            and word.start <= match.end
            and not _THEREFORE.search(text, subject.end, max(subject.end, match.start))
        ):
            # "a message" is ambiguous. It counts as an attacker if the sentence then refuses it.
            strong = text[subject.start : subject.end] not in _WEAK
            if strong or refused:
                return True
    return False


_WEAK = {
    "someone",
    "a message",
    "an email",
    "a page",
    "a document",
    "a note",
    "tool output",
    "a mail",
    "an e-mail",
    "web page",
    "web pages",
    "webpage",
    "the page",
    "the mail",
    "caller",
    "callers",
    "any email",
    "any mail",
    "any message",
    "a stranger",
    "strangers",
}
_REFUSED = re.compile(
    r"[^.!?\n]{0,60}[.!?,;:]?[\"')]{0,2}\s{0,3}[^.!?\n]{0,60}\b(?:refuse|reject|report|escalate|do not|don't|never|hang up|stop|"
    r"delete it|is (?:a )?(?:scam|phishing|fraud|attack)|treat (?:it|this|that|them) as|ignore)\b"
)
_PAIRS = (('"', '"'), ("`", "`"))
_SINGLE_OPEN = re.compile(r"(?:^|[\s(:\[])'(?=\S)")
_SINGLE_CLOSE = re.compile(r"(?<=\S)'(?:$|[\s.,;:)!?\]])")


def _quote_around(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return (start, end) of the quotation around text[start:end], None if there is none.

    Only the same paragraph is searched.
    """
    low = max(text.rfind("\n\n", max(0, start - _REACH), start), start - _REACH, 0)
    high = text.find("\n\n", end, end + _REACH)
    high = min(len(text), end + _REACH) if high < 0 else high
    for mark, closing in _PAIRS:
        opened = text.rfind(mark, low, start + 1)
        if opened >= 0 and text.count(mark, low, start + 1) % 2 == 1:
            closed = text.find(closing, end - 1, high)
            if closed >= 0 and text.find(closing, opened + 1, end - 1) < 0:
                return opened, closed + 1
    opens = [found.end() - 1 for found in _SINGLE_OPEN.finditer(text, low, start + 1)]
    if opens and opens[-1] <= start:
        close = _SINGLE_CLOSE.search(text, end - 1, high)
        earlier = _SINGLE_CLOSE.search(text, opens[-1] + 1, end - 1)
        if close is not None and earlier is None:
            return opens[-1], close.start() + 1
    return None
