"""The fenced blocks of the documentation, and the steps in their console blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
LANGUAGES = {"console", "sh", "bash", "shell", "python"}
_TITLE = re.compile(r'title="([^"]+)"')
_PATH_COMMENT = re.compile(r"# ([\w./-]+\.py)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block. `page` is relative to the repository, `line` is that of the fence."""

    page: str
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def language(self) -> str:
        return self.info.split(" ")[0]

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def file_name(self) -> str:
        """Return the name of the file that the reader should save, or ""."""
        found = _TITLE.search(self.info) or _PATH_COMMENT.match(self.text)
        return found[1] if found else ""


@dataclass(frozen=True)
class Step:
    """A command, and the output that the page shows: "" if it shows none."""

    line: int
    command: str
    output: str = ""


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the blocks of a page in the languages that tests run."""
    fences = (token for token in MarkdownIt().parse(text) if token.type == "fence")
    found = (
        Block(page, token.map[0] + 1, token.info, token.content) for token in fences if token.map
    )
    return [block for block in found if block.language in LANGUAGES]


@cache
def all_blocks() -> list[Block]:
    """Return the blocks of all pages, in the order of each page."""
    pages = sorted(
        [
            *(ROOT / "docs").rglob("*.md"),
            *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
        ]
    )
    return [
        block
        for path in pages
        for block in blocks_of(path.relative_to(ROOT).as_posix(), path.read_text())
    ]


def steps_of(block: Block) -> list[Step]:
    """Return the commands of a block: one for each line with a prompt, or the whole block."""
    if not re.search(r"^\$ ", block.text, re.MULTILINE):
        return [Step(block.line + 1, block.text)]
    steps: list[Step] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            steps.append(Step(number, line[2:] + "\n"))
        else:
            assert steps, f"{block}: output without a command"
            last = steps[-1]
            steps[-1] = Step(last.line, last.command, f"{last.output}{line}\n")
    return steps


def shows(wanted: str, got: str) -> bool:
    """Return whether the output is the one that a page shows. `…` stands for anything."""
    parts = (re.escape(part) for part in wanted.strip().split("…"))
    return re.fullmatch(".*".join(parts), got.strip(), re.DOTALL) is not None
