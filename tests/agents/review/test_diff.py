"""A diff shows every change, folds only equal lines, and marks the exact characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.hidden_text import visible
from agents.review.diff import diff_section
from agents.review.parts import DiffRow, DiffSection
from tests.agents.review.findings import Found

TEXTS = st.text(st.sampled_from("ab \t\r\n\u202e\u200b\u2028ä"), max_size=60)


def text_of(row: DiffRow) -> str:
    return "".join(span.text for span in row.spans)


def side(section: DiffSection, kind: str) -> list[str]:
    return [text_of(row) for row in section.rows if row.kind in ("context", kind)]


def marked(section: DiffSection, mark: str) -> list[str]:
    return [span.text for row in section.rows for span in row.spans if mark in span.marks]


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


@given(TEXTS, TEXTS)
def test_both_sides_are_there_in_full(old: str, new: str) -> None:
    section = diff_section("a", old, new, excerpt=True)
    for text, kind in ((old, "removed"), (new, "added")):
        lines = text.split("\n") if text else []
        if lines and not lines[-1]:
            lines.pop()
        assert side(section, kind) == [visible(line) for line in lines]


@given(TEXTS, TEXTS)
def test_line_numbers_and_gaps_account_for_every_line(old: str, new: str) -> None:
    at_old = at_new = 1
    for row in diff_section("a", numbered(9) + old, numbered(9) + new).rows:
        step = row.folded if row.kind == "gap" else 1
        if row.kind != "added":
            assert row.old_line == at_old
            at_old += step
        if row.kind != "removed":
            assert row.new_line == at_new
            at_new += step
        assert (row.kind == "gap") == (row.folded > 0)


def test_only_unchanged_lines_are_folded() -> None:
    old = numbered(40)
    new = old.replace("line 20\n", "line twenty\n")
    rows = diff_section("notes.md", old, new).rows
    assert [(row.kind, row.folded) for row in rows if row.kind != "context"] == [
        ("gap", 16),
        ("removed", 0),
        ("added", 0),
        ("gap", 17),
    ]
    assert len(rows) == 2 + 2 + 6
    everything = diff_section("notes.md", old, "x\n" * 5_000)
    assert (everything.added, everything.removed) == (5_000, 40)


def test_changed_words_are_marked_on_both_sides() -> None:
    section = diff_section("a", "let limit = 10;\n", "let limit = 1000;\n")
    assert marked(section, "changed") == ["10", "1000"]


def test_lines_that_have_little_in_common_are_not_compared_word_by_word() -> None:
    section = diff_section("a", "one two three\n", "something else entirely\n")
    assert marked(section, "changed") == []


def test_a_missing_line_break_at_the_end_is_a_reported_change() -> None:
    rows = diff_section("a", "x\ny\n", "x\ny").rows
    assert [(row.kind, row.no_newline) for row in rows] == [
        ("context", False),
        ("removed", False),
        ("added", True),
    ]


def test_invisible_characters_are_marked_at_their_position() -> None:
    section = diff_section("a", "", "pay\u202ereversed\r\nend \t\n")
    assert marked(section, "hidden") == ["⟨U+202E⟩", "⟨U+000D⟩"]
    assert marked(section, "trailing") == ["⟨U+000D⟩", " \t"]
    assert [text_of(row) for row in section.rows] == ["pay⟨U+202E⟩reversed⟨U+000D⟩", "end \t"]


def test_only_a_line_feed_ends_a_line() -> None:
    section = diff_section("a", "", "a\u2028b\x0bc\x85d")
    assert [text_of(row) for row in section.rows] == ["a⟨U+2028⟩b⟨U+000B⟩c⟨U+0085⟩d"]


@given(TEXTS, st.lists(st.tuples(st.integers(-3, 70), st.integers(-3, 70)), max_size=4))
def test_findings_split_the_new_side_at_their_characters(
    new: str, places: list[tuple[int, int]]
) -> None:
    findings = [Found(start, end) for start, end in places]
    section = diff_section("a", "", new, findings=findings)
    covered = {at for start, end in places if start < end for at in range(max(start, 0), end)}
    expected = "".join(visible(c) for at, c in enumerate(new) if at in covered and c != "\n")
    assert len(section.findings) == len(findings)
    if all(0 <= start < end <= len(new) for start, end in places):
        assert "".join(marked(section, "warning")) == expected


def test_a_finding_in_an_unchanged_line_is_not_folded() -> None:
    old = numbered(40)
    start = old.index("line 20")
    section = diff_section("a", old, old + "more\n", findings=[Found(start, start + 4, "danger")])
    assert marked(section, "danger") == ["line"]
    assert section.findings[0].line == 20
    assert [row.kind for row in section.rows].count("gap") == 2


def test_a_severity_that_is_unknown_is_the_gravest() -> None:
    section = diff_section("a", "", "abc", findings=[Found(1, 2, "<script>", "x\ny")])
    assert marked(section, "danger") == ["b"]
    assert section.findings[0].description == "x⟨U+000A⟩y"


def test_many_findings_in_one_line_cost_linear_time() -> None:
    text = "a" * 20_000
    findings = [Found(at, 20_000) for at in range(5_000)]
    section = diff_section("a", "", text, findings=findings)
    spans = section.rows[0].spans
    assert len(spans) == 5_000
    assert max(len(span.title) for span in spans) < 200


def test_a_created_and_a_deleted_file_are_shown() -> None:
    assert diff_section("a", None, "x\n").status == "new"
    assert diff_section("a", "x\n", None).status == "deleted"
    assert diff_section("a", "", "").status == "unchanged"
    assert diff_section("a", "x\n", None).removed == 1
