"""The English words of each class, from `words.txt`."""

from __future__ import annotations

from pathlib import Path

from text_scanner.concepts import C


def _read(path: Path) -> dict[C, str]:
    found: dict[C, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = found.setdefault(C[line.strip("[]")], [])
        elif not line.startswith("#"):
            lines.append(line)
    return {concept: " ".join(entries).strip() for concept, entries in found.items()}


WORDS = _read(Path(__file__).with_name("words.txt"))
