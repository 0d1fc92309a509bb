"""The search for hosts in a whole text gives the same answers as a simple reading."""

from __future__ import annotations

import itertools
import re
import socket
import stringprep
import time
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.call_patterns.host_views import _pieces, lines_of, views_of
from agents.call_patterns.hosts import HostReading
from agents.call_patterns.steps import Steps, TooMuchToRead
from agents.conditions import holds
from agents.spec import CallCondition
from tests.support.growth import TIMES, assert_linear

PATTERNS = (
    "evil.example",
    "*.evil.example",
    "e*.example",
    "*.example",
    "*",
    "*x.*",
    "a.*.b",
    "a.*",
    "*.b",
    "evil",
    "10.0.0.1",
    "0.0.0.1",
    "10.*.*.*",
    "*.0.0.1",
    "1*.0.0.*",
    "::1",
    "xn--bcher-kva.example",
    "bücher.example",
    "*.xn--bcher-kva.example",
    "*-kva.example",
    "x*.example",
)
PIECES = (
    "evil.example",
    "EVIL.Example",
    "evil",
    "example",
    "a",
    "b",
    "x",
    "10.0.0.1",
    "10.1",
    "0x0a.1",
    "012.0.1",
    "167772161",
    "10.7.8.9",
    "1.1",
    "[::1]",
    "::1",
    "xn--bcher-kva",
    "bücher",
    "Bücher",
    "bu\u0308cher",
    "ｅｖｉｌ",
    "ß",
    "ä",
    "…",
    "。",
    "．",
    "“",
    "\u200d",
    "\xad",
    "\ud800",
    "%2e",
    "%C3%BC",
    "//",
    "/",
    "\\",
    "https:",
    "http://",
    "@",
    ":",
    ":80",
    ".",
    "..",
    "-",
    "_",
    "[",
    "]",
    " ",
    "\n",
    "\t",
    "\v",
    '"',
    "'",
    "<",
    "?",
    "#",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=7).map("".join) | st.text(max_size=12)
INPUTS = st.dictionaries(st.sampled_from(["url", "text", "k.b"]), TEXTS, min_size=1, max_size=2)


def fits(pattern: str, tool_input: Any) -> bool:
    return HostReading(tool_input, Steps()).fits(pattern)


# --- A plain reading: every part of a text, one by one. ---

ASCII = r"a-z0-9_\-"
ENDS = "/\\?# \t\n\f\r\"'<>@"
BEGINS = re.compile(r"(?:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]*|@)\Z", re.IGNORECASE)


def expression_of(pattern: str) -> re.Pattern[str]:
    name = pattern.encode("idna").decode() if not pattern.isascii() else pattern
    if name == "*":
        return re.compile("(?s).+")
    below = name.startswith("*.")
    labels = name.removeprefix("*.").split(".")
    rest = r"\.".join("[^.]*".join(map(re.escape, label.split("*"))) for label in labels)
    return re.compile((r"(?:[^.]+\.)+" if below else "") + rest, re.IGNORECASE)


def plainly(pattern: str, tool_input: Any) -> bool:
    """Return whether a substring of a view can be a host, and matches in one of its readings."""
    expression = expression_of(pattern)
    for line in "\n".join(each.decode() for each in lines_of(tool_input)).split("\n"):
        if any(read(expression, part) for part in (line, line.partition(":")[0])):
            return True
    return any(
        read(expression, host)
        for view in views_of(tool_input)
        for host in substrings_of(view.decode())
    )


def substrings_of(text: str) -> Iterator[str]:
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        inner, before, after = text[start:end], text[:start], text[end:]
        ends = not after or after[0] in ENDS or (after[0] == ":" and ":" not in inner)
        if ends and BEGINS.search(before) and not set(inner) & set(ENDS):
            yield inner
        if before.endswith("[") and after.startswith("]"):
            yield inner
        if "." in inner and is_name(inner) and begins_name(before) and ends_name(after):
            yield inner


def is_name(inner: str) -> bool:
    labels = inner.split(".")
    return all(re.fullmatch(f"[{ASCII}\x80-\U0010ffff]+", label, re.I) for label in labels)


def begins_name(before: str) -> bool:
    return not re.search(f"[{ASCII}.]\\Z", before, re.I) or bool(
        re.search(f"(?:\\A|[^{ASCII}])\\.\\Z", before, re.I)
    )


def ends_name(after: str) -> bool:
    return not re.match(f"[{ASCII}.]", after, re.I) or bool(
        re.match(f"\\.(?:\\Z|[^{ASCII}])", after, re.I)
    )


def read(expression: re.Pattern[str], host: str) -> bool:
    host = host.lstrip("[]")
    for stripped in {host, host.rstrip("."), host.rstrip("[]"), host.rstrip("[]").rstrip(".")}:
        if stripped and any(expression.fullmatch(each) for each in readings(stripped)):
            return True
    return False


def readings(host: str) -> Iterator[str]:
    yield host
    try:
        yield socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):  # ValueError: a character that addresses cannot have
        pass
    if not host.isascii():
        try:
            yield host.encode("idna").decode()
        except UnicodeError:
            pass


EXAMPLES = pytest.mark.parametrize("examples", [100, pytest.param(5_000, marks=pytest.mark.storm)])


@EXAMPLES
def test_whole_texts_are_read_as_part_by_part(examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.sampled_from(PATTERNS), INPUTS)
    @example("*", {"text": "a"})
    @example("10.0.0.1", {"url": "167772161 x"})
    @example("10.*.*.*", {"url": "167772161“"})
    @example("*.example", {"text": "…a.example."})
    def compare(pattern: str, tool_input: dict[str, str]) -> None:
        assert fits(pattern, tool_input) is plainly(pattern, tool_input)

    compare()


# --- The parser of earlier versions: its findings are still found. ---

AUTHORITY = re.compile(r"""(?i:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]*)([^/\\?# \t\n\f\r"'<>]+)""")
BARE = re.compile("[\"'\\\\\u200b-\u200d\u2060\ufeff\xad\t\r\n]")
HOST_LIKE = re.compile(r"[\w\u0300-\u036f-]+(?:\.[\w\u0300-\u036f-]+)+|\[[0-9a-fA-F:.]{2,45}\]")


def found_earlier(pattern: str, tool_input: dict[str, str]) -> bool:
    expression = expression_of(pattern)
    named = {text for name, text in tool_input.items() if name == "url"}
    mentioned: set[str] = set()
    for text in (*tool_input, *tool_input.values()):
        for view in (text, unquote(text), unicodedata.normalize("NFKC", text)):
            for source in (
                view,
                re.sub("[\"'\\\\\u200b-\u200d\u2060\ufeff\xad]|[\t\r\n]", "", view),
            ):
                plain = source.encode(errors="replace").decode()
                named |= {match[1] for match in AUTHORITY.finditer(plain)}
                mentioned |= {match[0] for match in HOST_LIKE.finditer(plain)}
    parts = {part for each in named for part in each.split("@")}
    hosts = mentioned | parts | {part.partition(":")[0] for part in parts}
    stripped = {host.strip("[]").rstrip(".") for host in hosts}
    return any(
        expression.fullmatch(each)
        for host in stripped
        if host
        for each in (host.casefold(), *list(readings(host))[1:])
    )


@pytest.mark.slow
@EXAMPLES
def test_earlier_findings_are_still_found(examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.sampled_from(PATTERNS), INPUTS)
    def compare(pattern: str, tool_input: dict[str, str]) -> None:
        if found_earlier(pattern, tool_input):
            assert fits(pattern, tool_input)

    compare()


def may_become_ascii(character: str) -> bool:
    """Return whether the first steps of IDNA leave only ASCII. All steps take much longer."""
    if stringprep.in_table_b1(character):
        return True
    mapped = stringprep.map_table_b2(character)
    return unicodedata.ucd_3_2_0.normalize("NFKC", mapped).isascii()


@pytest.mark.slow
def test_every_letter_with_an_ascii_form_is_read() -> None:
    """A pattern without `xn--` and stars is not compared with the ASCII forms of names."""
    read, missing = 0, []
    for code in range(0x80, 0x30000):
        character = chr(code)
        if not may_become_ascii(character):
            continue
        try:
            written = f"a{character}b.example".encode("idna").decode()
        except UnicodeError:
            continue
        if "xn--" in written or not re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", written):
            continue
        read += 1
        if not fits(written, {"text": f"//a{character}b.example/"}):
            missing.append(character)
    assert not missing
    assert read > 1_000


@given(st.text(st.sampled_from("ab é\u0301\u1161가ﷺ.。\n"), max_size=200))
def test_pieces_are_the_whole_text(text: str) -> None:
    assert "".join(_pieces(text.encode())) == text


HOSTILE: dict[str, Callable[[int], str]] = {
    "a chain of users": lambda size: "//" + "a@" * (size // 2),
    "different users": lambda size: "//" + "@".join(f"a{n}" for n in range(size // 7)),
    "different names": lambda size: " ".join(f"a{n}.b" for n in range(size // 9)),
    "other letters": lambda size: " ".join(f"ä{n}.b" for n in range(size // 10)),
    "numbers": lambda size: " ".join(f"//{n}" for n in range(size // 9)),
    "escapes": lambda size: "%41" * (size // 3),
    "marks": lambda size: "a" + "\u0301\u0327" * (size // 4),
    "wide characters": lambda size: "\ufdfa" * (size // 3),
}
"""Texts of about that many bytes."""
SIZE = 60_000
"""More of the slowest texts would exceed the limits, which end them early."""


def hold(pattern: str, text: str) -> None:
    for permits in (True, False):
        holds(CallCondition(host=pattern), "fetch", {"url": text, "text": text}, permits=permits)


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("pattern", ["*.evil.example", "10.*.*.*", "xn--*.evil.example"])
def test_time_grows_linearly(kind: str, pattern: str) -> None:
    small, large = HOSTILE[kind](SIZE // TIMES), HOSTILE[kind](SIZE)
    hold(pattern, small[:100])  # the first one compiles the expressions
    assert_linear(lambda: hold(pattern, small), lambda: hold(pattern, large))


MB = 1_000_000
LONG = {"marks": MB // 2, "wide characters": MB // 4}
"""Shorter than the others, because no other limit ends these early."""


@pytest.mark.storm
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("pattern", ["*.evil.example", "10.*.*.*", "xn--*.evil.example"])
def test_two_megabytes_take_a_moment(kind: str, pattern: str) -> None:
    text = HOSTILE[kind](LONG.get(kind, 2 * MB))
    begun = time.process_time()
    sum(range(5_000_000))  # the unit: processors differ, and a busy one is slower
    unit = time.process_time() - begun
    begun = time.process_time()
    hold(pattern, text)
    assert time.process_time() - begun < 45 * unit  # about 15


def test_more_than_can_be_read_fits_a_denial_and_no_permission() -> None:
    names = " ".join(f"ä{number}.ö" for number in range(20_000))
    with pytest.raises(TooMuchToRead):
        fits("bücher.example", {"text": names})
    condition = CallCondition(host="bücher.example")
    assert holds(condition, "fetch", {"text": names}, permits=False)
    assert not holds(condition, "fetch", {"url": names}, permits=True)
    # Other patterns do not need to read them one by one.
    assert not fits("evil.example", {"text": names})


def test_all_rules_share_one_reading() -> None:
    from agents.conditions import CallReading

    call = {"text": "a.b " * 250_000}
    reading = CallReading(call)
    answers = [
        holds(
            CallCondition(host=f"evil-{number}.example"),
            "fetch",
            call,
            permits=False,
            reading=reading,
        )
        for number in range(300)
    ]
    assert not answers[0]
    assert answers[-1], "after the last step, denying conditions fit"
