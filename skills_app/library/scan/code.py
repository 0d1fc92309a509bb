"""Apply the rules to the text of one file and to its decoded forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from skills_app.library.scan.combinations import combined
from skills_app.library.scan.finding import ScanFinding, Severity
from skills_app.library.scan.languages import Role
from skills_app.library.scan.rules import SIGNS, rules_of
from skills_app.library.scan.sets import compile_set
from skills_app.library.scan.text import at
from skills_app.library.scan.unfolding import opened, unfolded
from text_scanner.linear import compile_linear

MAX_MATCHES = 3
"""The maximum number of findings of one rule in one file."""
_PER_RULE = 8_000
"""The fixed cost of applying one rule, in bytes."""
_ANY_SIGN = compile_linear(b"|".join(re.escape(sign) for sign in SIGNS), any_case=True)


@cache
def _signs() -> Any:
    return compile_set([re.escape(sign) for sign in SIGNS])


def signs_in(data: bytes) -> set[bytes]:
    """Return the signs of rules that `data` contains, in any case."""
    found = _signs().Match(data)
    if found:
        return {SIGNS[index] for index in found}
    # RE2 finds nothing if it runs out of memory. Then all signs count as present.
    return set(SIGNS) if _ANY_SIGN.search(data) else set()


class Effort:
    """The effort that remains for the rules of one package, in bytes that one rule examines."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def afford(self, data: bytes, rules: int) -> bool:
        """Return whether `rules` rules may examine `data`, and subtract the cost.

        If the effort does not suffice, it becomes 0.
        """
        cost = rules * (len(data) + _PER_RULE)
        if cost > self.left:
            self.left = 0
            return False
        self.left -= cost
        return True


def rule_findings(path: str, data: bytes, role: Role, effort: Effort) -> list[ScanFinding]:
    """Return the findings of all rules in `data`, a file with the path and role given.

    There are none if `effort` does not suffice.
    """
    return [held for held, _ in _rule_hits(path, data, role, effort)]


def _rule_hits(
    path: str, data: bytes, role: Role, effort: Effort
) -> Iterator[tuple[ScanFinding, int]]:
    rules = rules_of(signs_in(data))
    if not effort.afford(data, len(rules)):
        return
    for rule in rules:
        severity = rule.in_code if role == "code" else rule.in_prose
        if severity is None:
            continue
        for match in islice(rule.expression.finditer(data), MAX_MATCHES):
            held: Severity = severity
            if rule.code == "remote-code" and _is_known_installer(match[0]):
                held = "note"
            yield at(held, rule.code, path, data, match.span(), f"{rule.message}."), match.start()


_KNOWN = compile_linear(
    rb"https?://(?:[a-z0-9-]+\.)*(?:astral\.sh|rustup\.rs|get\.docker\.com|deno\.land|deno\.com|bun\.sh|bun\.com|get\.pnpm\.io|ollama\.com|"
    rb"python-poetry\.org|starship\.rs|fly\.io|nodesource\.com|claude\.ai|brew\.sh|nixos\.org|determinate\.systems|volta\.sh|vite\.plus|chocolatey\.org|get\.scoop\.sh|"
    rb"raw\.githubusercontent\.com/(?:homebrew|nvm-sh|ohmyzsh|helm|pyenv|asdf-vm|rbenv|anchore|aquasecurity|golangci|goreleaser|astral-sh|rustdesk|k3d-io)/|sh\.vercel\.com|"
    rb"tailscale\.com|get\.k3s\.io|sdkman\.io|haskell\.org|foundry\.paradigm\.xyz|rclone\.org|arduino\.cc|cursor\.com|opencode\.ai|mise\.run|mise\.jdx\.dev|get\.helm\.sh)",
    any_case=True,
)  # fmt: skip


def _is_known_installer(match: bytes) -> bool:
    """Return whether `match` is the official installation command of a known tool."""
    return _KNOWN.search(match) is not None and match.count(b"://") == 1


def code_findings(path: str, data: bytes, role: Role, effort: Effort) -> Iterator[ScanFinding]:
    """Yield the findings of the rules in `data` and its encoded parts.

    Code has combinations as well.

    The search stops when `effort` is used up.
    """
    plain = rule_findings(path, data, role, effort)
    yield from plain
    known = {(held.code, held.message) for held in plain}
    if role == "code":
        for held in combined(path, data):
            known.add((held.code, held.message))
            yield held
    for reading in unfolded(data) if role == "code" else opened(data):
        within: Role = "code" if reading.hidden else role
        for held, offset in _rule_hits(path, reading.data, within, effort):
            if held.severity == "note" or (
                not reading.hidden and (held.code, held.message) in known
            ):
                continue
            start = reading.origin(offset)
            severity: Severity = "danger" if reading.hidden else held.severity
            message = f"{held.message.rstrip('.')} (read through {reading.how}: {held.excerpt})."
            yield at(severity, held.code, path, data, (start, start + 80), message)
        if reading.hidden and role == "code":
            for held in combined(path, reading.data):
                yield at("danger", held.code, path, data, (reading.places[0][1],) * 2, held.message)
