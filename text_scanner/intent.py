"""Apply the rules of intent to the sentences of a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from text_scanner.clauses import Word, sentences
from text_scanner.concepts import C
from text_scanner.rules import RULES, Need, Rule

MAX_MATCHES = 400
_NEG = int(C.NEG)
_WIDE_GAP = 160
_RULES_BY_MASK_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matches a sentence.

    `start` and `end` are the offsets of the first and the last word that the rule needs.
    """

    rule: Rule
    start: int
    end: int
    words: tuple[Word, ...]


_candidates: dict[tuple[int, bool], tuple[Rule, ...]] = {}


def matches(text: str, *, joined: bool = False) -> Iterator[tuple[Match, list[Word]]]:
    """Yield (match, words of the sentence) for each rule that matches a sentence of `text`.

    `text` must be folded. With `joined`, it has no spaces between its words.
    """
    count = 0
    previous: list[Word] = []
    for sentence in sentences(text, joined=joined):
        found = [(match, sentence) for match in _holding(sentence, wide=False)]
        if (
            previous
            and sentence[0].start - previous[-1].end < _WIDE_GAP
            and "\n" not in text[previous[-1].end : sentence[0].start]
        ):
            both = previous + sentence if len(previous) + len(sentence) < 60 else sentence
            found += [(match, both) for match in _holding(both, wide=True)]
        yield from found
        count += len(found)
        if count >= MAX_MATCHES:
            return
        previous = sentence


def _holding(words: list[Word], *, wide: bool) -> Iterator[Match]:
    seen = 0
    for word in words:
        seen |= word.classes
    for rule in _rules_for(seen, wide=wide):
        if rule.unless and any(word.classes & rule.unless and not word.denied for word in words):
            continue
        if rule.one_negation and sum(bool(word.classes & _NEG) for word in words) != 1:
            continue
        match = _match(rule, words)
        if match is not None:
            yield match


def _rules_for(seen: int, *, wide: bool) -> tuple[Rule, ...]:
    key = (seen, wide)
    rules = _candidates.get(key)
    if rules is None:
        rules = tuple(
            rule
            for rule in RULES
            if (rule.wide or not wide) and all(seen & mask for mask in rule.masks)
        )
        if len(_candidates) >= _RULES_BY_MASK_MAX:
            _candidates.clear()
        _candidates[key] = rules
    return rules


def _match(rule: Rule, words: list[Word]) -> Match | None:
    for anchor in words:
        if not _fits(rule.anchor, anchor):
            continue
        used = [anchor]
        for wanted in rule.needs:
            word = _nearest(wanted, anchor, words, used)
            if word is None:
                break
            used.append(word)
        else:
            used.sort(key=lambda word: word.start)
            return Match(rule, used[0].start, used[-1].end, tuple(used))
    return None


def _nearest(wanted: Need, anchor: Word, words: list[Word], used: list[Word]) -> Word | None:
    best: Word | None = None
    least = 1 << 30
    for word in words:
        if word.start >= anchor.start:
            distance = word.start - anchor.end
            if distance > wanted.after:
                break
        else:
            distance = anchor.start - word.end
            if distance > wanted.before:
                continue
        if distance < least and _fits(wanted, word) and word not in used:
            best, least = word, distance
    return best


def _fits(wanted: Need, word: Word) -> bool:
    if not word.classes & wanted.classes:
        return False
    return wanted.polarity == "." or word.denied == (wanted.polarity == "-")
