"""Run all checks on a text and on its decoded and normalised forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from text_scanner.characters import character_hits
from text_scanner.clauses import Word
from text_scanner.decode import decoded_views, turned_views
from text_scanner.finding import Finding, Hit, Severity, findings_of
from text_scanner.intent import Match, matches
from text_scanner.likeness import like_attacks, only_doubtful, passages_of
from text_scanner.meaning import read_closely
from text_scanner.mentions import mentioned
from text_scanner.plain_notes import phrase_hits
from text_scanner.structure import shape_hits
from text_scanner.views import View, derived_views, plain_view

_DEPTH = 2
"""How many levels of nested encodings are decoded."""


def scan(content: str) -> list[Finding]:
    """Return the parts of `content` that a person should review, sorted by start.

    The list has at most MAX_FINDINGS entries. The function accepts any text and never raises an
    exception. The scan helps the reviewer and is not a security boundary: see
    docs/guides/memory-scanner.md.
    """
    return findings_of(content, [hit for hit in _hits(content, _DEPTH) if hit.end > hit.start])


def detect_suspicious_patterns(content: str) -> list[dict[str, str]]:
    """Return the findings of `scan` as dictionaries.

    The keys are `pattern`, `match`, `description` and `severity`.
    """
    return [
        {
            "pattern": finding.pattern,
            "match": finding.match,
            "description": finding.description,
            "severity": finding.severity,
        }
        for finding in scan(content)
    ]


def _hits(content: str, depth: int) -> Iterator[Hit]:
    yield from character_hits(content)
    plain = plain_view(content)
    yield from _mapped(plain, phrase_hits(plain.text))
    yield from _view_hits(plain)
    yield from _mapped(plain, shape_hits(plain.text))
    for view in (*derived_views(plain), *turned_views(plain)):
        yield from _view_hits(view)
    if depth:
        for view in decoded_views(content):
            yield from _mapped(
                view, (hit for hit in _hits(view.text, depth - 1) if hit.severity != "note")
            )


def _view_hits(view: View) -> Iterator[Hit]:
    text = view.text
    like: list[Hit] = []
    if not view.joined:  # without spaces there are no words to judge
        found = passages_of(text)
        like = list(like_attacks(read_closely(text, found, is_content=not view.kind)))
        text = only_doubtful(text, found)
    ruled = [_rule_hit(view.text, *held) for held in matches(text, joined=view.joined)]
    yield from _mapped(view, (_unless_mentioned(hit, ruled) for hit in like))
    yield from _mapped(view, iter(ruled))


def _rule_hit(text: str, match: Match, sentence: list[Word]) -> Hit:
    rule = match.rule
    severity: Severity = "note" if mentioned(text, match, sentence) else rule.severity
    return Hit(rule.pattern, rule.description, severity, match.start, match.end)


def _unless_mentioned(hit: Hit, ruled: list[Hit]) -> Hit:
    """Return `hit`, with severity "note" if all rule hits inside it are notes.

    A rule hit is a note if its text quotes or describes an attack.
    """
    within = [rule.severity for rule in ruled if rule.start < hit.end and rule.end > hit.start]
    return replace(hit, severity="note") if within and set(within) == {"note"} else hit


def _mapped(view: View, hits: Iterator[Hit]) -> Iterator[Hit]:
    for hit in hits:
        start, end = view.origin(hit.start, hit.end)
        description = (
            f"{hit.description} (read through {view.kind})" if view.kind else hit.description
        )
        yield Hit(hit.pattern, description, hit.severity, start, end)
