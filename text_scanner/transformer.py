"""Estimate with a small language model how likely a text steers an agent against its user.

The model is MiniLM (six layers of a transformer), fine-tuned by `tests/text_scanner/fine_tune.py`.
`meaning.npz` contains its weights as bytes, with one factor for each row.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from text_scanner.one_thread import one_thread
from text_scanner.wordpieces import pieces_of

with one_thread():
    import numpy as np
    from numpy.typing import NDArray

Matrix = NDArray[np.float32]
WEIGHTS = Path(__file__).with_name("meaning.npz")
MOST_PIECES = 110
"""The number of word pieces of a passage that the model reads."""
HEADS = 12
LAYERS = 6
_EPSILON = 1e-12


def logits(texts: list[str]) -> list[float]:
    """Return for each text, as a logit, how likely it steers an agent against its user.

    The texts must be folded.
    """
    if not texts:
        return []
    return _model().logits([pieces_of(text, MOST_PIECES) for text in texts])


@cache
def _model() -> _Model:
    return _Model(WEIGHTS)


class _Model:
    """The weights. The forward pass handles the word pieces of several texts in one matrix."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self._stored: dict[str, Any] = {name: stored[name] for name in stored.files}

    def logits(self, texts: list[list[int]]) -> list[float]:
        ends = np.cumsum([len(text) for text in texts])
        starts = ends - [len(text) for text in texts]
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        numbers = np.concatenate([np.asarray(text) for text in texts])
        places = np.concatenate([np.arange(len(text)) for text in texts])
        state = self._rows("words", numbers) + self._rows("places", places)
        state = self._normal(state, "words")
        for layer in range(LAYERS):
            state = self._layer(state, f"{layer}.", spans)
        means = np.add.reduceat(state, starts, axis=0) / (ends - starts)[:, None]
        found = means @ self._stored["head.weight"] + self._stored["head.bias"]
        return [float(value) for value in found]

    def _layer(self, state: Matrix, name: str, spans: list[tuple[int, int]]) -> Matrix:
        mixed = self._linear(state, name + "attention")
        seen = np.concatenate([self._attention(mixed[start:end]) for start, end in spans])
        state = self._normal(state + self._linear(seen, name + "output"), name + "first")
        inner = self._linear(state, name + "wide")
        inner *= 0.5 * (1 + np.tanh(0.7978845608 * (inner + 0.044715 * inner * inner * inner)))
        return self._normal(state + self._linear(inner, name + "narrow"), name + "second")

    def _attention(self, mixed: Matrix) -> Matrix:
        size = len(mixed)
        query, key, value = mixed.reshape(size, 3, HEADS, -1).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.float32(query.shape[-1] ** 0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        joined: Matrix = (scores @ value).transpose(1, 0, 2).reshape(size, -1)
        return joined

    def _linear(self, state: Matrix, name: str) -> Matrix:
        """Return `state` after the linear layer `name`.

        The stored bytes become numbers in each call, so that the process does not keep both in
        memory.
        """
        stored = self._stored
        matrix = stored[name].astype(np.float32)
        product: Matrix = state @ matrix.T * stored[name + ".factor"] + stored[name + ".bias"]
        return product

    def _rows(self, name: str, numbers: NDArray[np.int64]) -> Matrix:
        stored = self._stored
        rows: Matrix = stored[name][numbers] * stored[name + ".factor"][numbers][:, None]
        return rows

    def _normal(self, state: Matrix, name: str) -> Matrix:
        state = state - state.mean(axis=1, keepdims=True)
        spread = np.sqrt((state * state).mean(axis=1, keepdims=True) + _EPSILON)
        normal: Matrix = (
            state / spread * self._stored[name + ".scale"] + self._stored[name + ".shift"]
        )
        return normal
