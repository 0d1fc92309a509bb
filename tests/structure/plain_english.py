"""Count habits that make English hard to read for people whose first language is another one.

    python -m tests.structure.plain_english          check the project, as `make lint` does
    python -m tests.structure.plain_english PATH...  list the habits in these files

Text is Markdown, the text of templates, and the comments, docstrings and messages of Python. A
habit is not an error: a few in 1,000 words are fine. If a group of files has more, the command
prints lines of its densest files.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Habits in 1,000 words, at most. A group is a folder, without its templates.
PAGES = "pages at the top"
LIMITS: dict[str, float] = {
    **dict.fromkeys(("docs", PAGES, "templates"), 4),
    **dict.fromkeys(("agents", "memory", "sandbox", "skills_app", "text_scanner"), 6),
    **dict.fromkeys(("vel", "velproject", "examples", "benchmarks", "tests"), 6),
}
FILES_SHOWN, LINES_SHOWN = 5, 5
# The density of a shorter text is chance.
FEWEST_WORDS = 100

# The advice, and an expression for lower-case text.
HABITS = {
    "name the thing, as in `the pending requests`": r"""
        (?: (?<=[.;:,(|#*-]\s) | (?<=\n\n)
        | (?:of|for|from|by|with|to|and|but|than|in|on|that|is|are|has|have|all)\s+
        | (?:say|see|read|keep|make|add|take|give|show)s?\s+ )
        (?:what|whatever|whoever|whom|whose|whichever)\b (?![^.?|\n]{0,80}\?)
    """,
    "use the exact verb, as in `receives`, `reports`, `requires`": r"""
        (?:is|are|was|were|be|been|being)\s+told | tells?(?!\s+apart) | said
        | says\s+(?:so|what|which|who|how)
    """,
    "say it positively, as in `Only the owner can`": r"""
        (?:is|are|was|were)\s+none | (?:is|are)\s+no\s+\w+\s+that | nothing\s+(?:but|else|of)
        | nobody | none\s+(?:of|that)
    """,
    "use a common word, as in `continues`, `starts`, `again`": r"""
        anew | therein | thereof | thereby | wherever | perhaps | meanwhile | beforehand
        | by\s+(?:itself|themselves) | of\s+(?:its|their|one's)\s+own | lies? | lay | stands?
        | stood | go(?:es|ing)?\s+on | begins? | began | comes?\s+to | to\s+be\s+had | at\s+once
        | until\s+then | so\s+(?:many|much) | (?:so|as)\s+far\s+as | but\s+for | apart\s+from
        | beside | beneath | beyond\s+it
    """,
    "make two sentences": r"(?:that|which|who)\b (?:[^.;:|\n]{3,60}\b(?:that|which|who)\b){2}",
}
HABIT = re.compile(rf"\b(?:{'|'.join(f'({habit})' for habit in HABITS.values())})\b", re.X)
WORD = re.compile(r"[a-z][a-z'’]+")
# Comments and strings. The code between them has neither quotes nor a number sign.
# No possessive quantifiers: Python 3.11.2 matches them wrongly.
PYTHON = re.compile(
    r'#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    r'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'',
    re.S,
)
# With fewer spaces, a string of Python is a name, a key or a path.
FEWEST_SPACES = 3
CODE = {
    ".md": re.compile(r"```.*?```|(?<=\])\([^)\n]*\)", re.S),
    ".html": re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|\{[%{#].*?[%}#]\}", re.S),
}
# The text in a template's tag. A text between two tags needs no exception.
TRANSLATED = re.compile(r"""\{%\s*translate\s+(["'])(.*?)\1[^%]*%\}""", re.S)
NAMES = re.compile(r"`[^`\n]*`|\{[^{}\n]*\}")


@dataclass(frozen=True)
class Text:
    """The text of one file, in lower case, with the line breaks of the file."""

    path: Path
    text: str

    @cached_property
    def words(self) -> int:
        return len(WORD.findall(self.text))

    @cached_property
    def habits(self) -> list[re.Match[str]]:
        return list(HABIT.finditer(self.text))

    @property
    def density(self) -> float:
        return 1000 * len(self.habits) / max(self.words, 1)

    def lines(self) -> Iterator[str]:
        """Yield the place, the words and the advice of each habit."""
        for habit in self.habits:
            line = self.text.count("\n", 0, habit.start()) + 1
            advice = list(HABITS)[(habit.lastindex or 1) - 1]
            yield f"{self.path}:{line}: {' '.join(habit[0].split())!r}: {advice}"


def text_of_python(source: str) -> Iterator[str]:
    end = 0
    for part in PYTHON.finditer(source):
        between = source[end : part.start()]
        # Comments and strings (with prefixes) that follow each other are one text.
        is_next = end and not between.strip(" \t\nbfr")
        yield "\n" * between.count("\n") + (" " if is_next else "| ")
        text = part[0].strip("#'\"").replace("\\n", "  ")
        is_text = part[0][0] == "#" or text.count(" ") >= FEWEST_SPACES
        yield text if is_text else "\n" * text.count("\n")
        end = part.end()


def read(path: Path) -> Text:
    text = path.read_text(encoding="utf-8")
    if code := CODE.get(path.suffix):
        if path.suffix == ".html":
            text = TRANSLATED.sub(r"\2", text)
        text = code.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
    else:
        text = "".join(text_of_python(text))
    return Text(path, NAMES.sub("x", text).lower())


def groups() -> dict[str, list[Text]]:
    """Read all texts of the project in the current directory."""
    found = defaultdict[str, list[Text]](list)
    found[PAGES] = [read(path) for path in sorted(Path().glob("*.md"))]
    for folder in LIMITS:
        for path in sorted(Path(folder).rglob("*.*")):
            if path.suffix in (".py", ".md", ".html") and "migrations" not in path.parts:
                found["templates" if path.suffix == ".html" else folder].append(read(path))
    return found


def check() -> Iterator[str]:
    """Yield the lines of a report for each group that is above its limit."""
    for group, texts in groups().items():
        density = 1000 * sum(len(t.habits) for t in texts) / max(sum(t.words for t in texts), 1)
        if density <= LIMITS[group]:
            continue
        yield f"{group}: {density:.1f} habits in 1,000 words, at most {LIMITS[group]}"
        long = [text for text in texts if text.words >= FEWEST_WORDS]
        for text in sorted(long, key=lambda text: -text.density)[:FILES_SHOWN]:
            yield from [f"  {line}" for line in text.lines()][:LINES_SHOWN]


if __name__ == "__main__":
    named = [line for name in sys.argv[1:] for line in read(Path(name)).lines()]
    report = named if sys.argv[1:] else list(check())
    print(*report, sep="\n", end="\n" if report else "")
    sys.exit(bool(report) and not sys.argv[1:])
