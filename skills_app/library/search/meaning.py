"""How near a request is to a skill in meaning, by a small language model.

`meaning.npz` contains the layers that `tests/skills_app/library/search/fine_tune.py` trained for
this. Import this module lazily: numpy and the weights take 0.2 s of processor time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from language_model.encoder import Encoder, Matrix, np
from language_model.wordpieces import pieces_of
from skills_app.library.search.tokens import fold

WEIGHTS = Path(__file__).with_name("meaning.npz")
SKILL_PIECES, REQUEST_PIECES = 40, 64
"""How many word pieces are read. More of a skill's description does not find it more often."""
BATCH = 16
SIZE = 384
"""The bytes of a vector."""
MOST_KNOWN = 10_000
"""The vectors that a process keeps."""


def vectors_of(texts: Sequence[str]) -> list[bytes]:
    """Return the vector of each text about a skill, as signed bytes."""
    known = {text: _known[text] for text in texts if text in _known}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        for text, vector in zip(batch, _read(batch, SKILL_PIECES), strict=True):
            known[text] = np.round(vector * (127 / np.abs(vector).max())).astype(np.int8).tobytes()
    if len(_known) < MOST_KNOWN:
        _known.update(known)
    return [known[text] for text in texts]


_known: dict[str, bytes] = {}


def known(text: str) -> bytes | None:
    """Return the vector of a text that this process knows."""
    return _known.get(text)


def remember(text: str, vector: bytes) -> None:
    """Know the vector of a text from elsewhere.

    Raises `ValueError` if it cannot be a vector.
    """
    if len(vector) != SIZE:
        raise ValueError(f"a vector has {SIZE} bytes, not {len(vector)}")
    if len(_known) < MOST_KNOWN:
        _known[text] = vector


def nearness(request: str, vectors: Sequence[bytes]) -> list[float]:
    """Return the cosines of a request and skills' vectors; a negative one is 0."""
    rows = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    found = rows @ _request(request) / np.linalg.norm(rows, axis=1)
    return [float(cosine) for cosine in np.maximum(found, 0.0)]


@lru_cache(maxsize=256)
def _request(text: str) -> Matrix:
    (vector,) = _read([text], REQUEST_PIECES)
    return vector


def _read(texts: Sequence[str], most: int) -> Matrix:
    """Return a row of length 1 for each text."""
    means = _model().means([pieces_of(fold(text), most) for text in texts])
    rows: Matrix = means / np.linalg.norm(means, axis=1, keepdims=True)
    return rows


@cache
def _model() -> Encoder:
    return Encoder(WEIGHTS)
