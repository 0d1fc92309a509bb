"""Write `skills_app/library/search/stems.txt`: python -m tests.skills_app.library.search.stem_table

It has the English words of the synonyms, of the stop words and of the built-in skills.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snowballstemmer.english_stemmer import EnglishStemmer

import skills_app
from skills_app.library.search.tokens import FAMILIES, STEMS, STOP_WORDS, words

BUILT_IN = Path(skills_app.__file__).parent / "builtin"


def _texts() -> Iterator[str]:
    for path in (FAMILIES, STOP_WORDS, *BUILT_IN.glob("*/SKILL.md")):
        yield path.read_text(encoding="utf-8")
    for path in BUILT_IN.glob("*/**/*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(BUILT_IN).as_posix()


def table() -> str:
    """Return the content of the file: a line for each stem, with its words."""
    stemmer = EnglishStemmer()
    found: dict[str, set[str]] = {}
    for text in _texts():
        for word in words(text):
            plain = word.replace("’", "'").split("'")[0]
            if len(plain) >= 3 and plain.isascii() and plain.isalpha():
                found.setdefault(stemmer.stemWord(plain), set()).add(plain)
    return "".join(f"{stem} {' '.join(sorted(found[stem]))}\n" for stem in sorted(found))


if __name__ == "__main__":
    STEMS.write_text(table(), encoding="ascii")
