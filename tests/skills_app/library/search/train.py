"""Makes `skills_app/library/search/words.tsv`.

Run `python -m tests.skills_app.library.search.train DIRECTORY …`.

Needs NumPy, SciPy and scikit-learn, which are not dependencies of the project. The table in the
repository was made from 19,000 Markdown files of public repositories (7,600 of them skills, the
rest handbooks and documents), which are not in the repository. The same files give the same table.

A word's direction is a row of the truncated singular value decomposition of the positive pointwise
mutual information of words within WINDOW words of each other.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd

from skills_app.library.package import SKILL_FILE
from skills_app.library.search.query import DIMENSIONS, TABLE
from skills_app.library.search.tokens import STOP, stems

KEPT = 8_400
"""The number of words with a direction: those that are in most files."""
LEAST_FILES = 40
WINDOW = 10
SMOOTHING = 0.75
"""The exponent of the neighbours' frequency, so that rare ones do not count too much."""
HEAD_WEIGHT = 3
"""The weight of a skill's frontmatter, because it summarises the rest."""
SPAN, FLOOR = 6.2, 0.15
"""ln(files / files with the word) of a rare word, and the minimum for common words."""
MAX_CHARACTERS = 14_000
"""The limit for the text of one file."""
_CODE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+")
_PARAGRAPH = re.compile(r"\n\s*\n|(?=\n#)")

Text = list[list[str]]
"""The stems of each paragraph of a file."""


def read_texts(directories: list[Path]) -> Iterator[Text]:
    """Yield each different file once, in the order of their paths."""
    seen: set[str] = set()
    for path in sorted(path for each in directories for path in each.rglob("*.md")):
        text = path.read_text(encoding="utf-8", errors="replace")
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        head = _HEAD.match(text)
        body = _CODE.sub("\n\n", text[head.end() :] if head else text)[:MAX_CHARACTERS]
        paragraphs = [stems(part) for part in _PARAGRAPH.split(_ADDRESS.sub(" ", body))]
        if head and path.name == SKILL_FILE:
            paragraphs += [stems(head[1])] * HEAD_WEIGHT
        yield paragraphs


def files_with_words(texts: list[Text]) -> Counter[str]:
    return Counter(word for text in texts for word in {word for part in text for word in part})


def together(texts: list[Text], places: dict[str, int]) -> csr_matrix:
    """Count how often two words are within WINDOW words of each other."""
    size = len(places)
    counts = csr_matrix((size, size), dtype=np.float32)
    for start in range(0, len(texts), 500):
        pairs = []
        for text in texts[start : start + 500]:
            for part in text:
                known = np.array([places[word] for word in part if word in places], dtype=np.int64)
                for apart in range(1, min(WINDOW, len(known) - 1) + 1):
                    pairs.append(known[:-apart] * size + known[apart:])
        if pairs:
            keys, found = np.unique(np.concatenate(pairs), return_counts=True)
            rows_columns = (keys // size, keys % size)
            counts = counts + csr_matrix((found.astype(np.float32), rows_columns), (size, size))
    return counts + counts.T


def directions(counts: csr_matrix) -> np.ndarray:
    """Return a row of length 1 for each word."""
    totals = np.asarray(counts.sum(1)).ravel()
    smooth = totals**SMOOTHING
    entries = counts.tocoo()
    expected = totals[entries.row] * smooth[entries.col] / smooth.sum()
    information = np.log(entries.data / expected)
    kept = information > 0
    places = (entries.row[kept], entries.col[kept])
    matrix = csr_matrix((information[kept], places), counts.shape)
    left, values, _ = randomized_svd(matrix, DIMENSIONS, n_iter=4, random_state=0)
    rows = left * np.sqrt(values)
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)


def packed(rows: np.ndarray) -> list[str]:
    """Encode the rows: 4 bits a number, two numbers a byte, base64."""
    steps = np.clip(np.round(rows / rows.std() * 2.0), -7, 7).astype(int) + 8
    return [b64encode(bytes(row[::2] << 4 | row[1::2])).decode() for row in steps.astype(np.uint8)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY")
    options.add_argument("--to", type=Path, default=TABLE)
    given = options.parse_args()
    texts = list(read_texts(given.directories))
    files = files_with_words(texts)
    usable = [
        word
        for word, count in sorted(files.items(), key=lambda item: (-item[1], item[0]))
        if word not in STOP and word.isascii() and word.isalpha() and 2 <= len(word) <= 20
    ][:KEPT]
    rows = directions(together(texts, {word: place for place, word in enumerate(usable)}))
    lines = []
    for word, code in zip(usable, packed(rows), strict=True):
        rare = min(1.0, math.log(len(texts) / files[word]) / SPAN)
        rarity = 100 if files[word] < LEAST_FILES else round(100 * max(FLOOR, rare))
        lines.append(f"{word}\t{rarity}\t{code}\n")
    given.to.write_text("".join(sorted(lines)), encoding="ascii")
    print(f"{len(texts):,} files, {len(lines):,} words")


if __name__ == "__main__":
    main()
