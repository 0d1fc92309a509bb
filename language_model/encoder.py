"""Read texts with MiniLM, a language model with six layers.

`base.npz` contains its embeddings and its first SHARED layers as published. Each use of the model
has its own file with the other layers, fine-tuned for this use. Weights are stored as one byte
each, with one float as the factor of each row.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from language_model.one_thread import one_thread

with one_thread():
    import numpy as np
    from numpy.typing import NDArray

Matrix = NDArray[np.float32]
BASE = Path(__file__).with_name("base.npz")
SHARED = 2
MOST_PIECES = 110
"""The most word pieces that the model can read in one text."""
HEADS = 12
LAYERS = 6
_EPSILON = 1e-12


class Encoder:
    """Turn texts into vectors. One matrix contains the word pieces of several texts.

    Args:
        own: The file with the layers from SHARED on, and further weights of this use.

    Raises:
        OSError: The file cannot be read.
    """

    def __init__(self, own: Path) -> None:
        self.stored = _base() | _weights(own)

    def means(self, texts: list[list[int]]) -> Matrix:
        """Return one vector for each text: the mean of the last states of its word pieces.

        Args:
            texts: The word pieces of each text, from `pieces_of`. At least one text, with 1 to
                `MOST_PIECES` pieces each.

        Returns:
            A matrix of shape (number of texts, 384).
        """
        ends = np.cumsum([len(text) for text in texts])
        starts = ends - [len(text) for text in texts]
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        numbers = np.concatenate([np.asarray(text) for text in texts])
        places = np.concatenate([np.arange(len(text)) for text in texts])
        state = self._rows("words", numbers) + self._rows("places", places)
        state = self._normal(state, "words")
        for layer in range(LAYERS):
            state = self._layer(state, f"{layer}.", spans)
        means: Matrix = np.add.reduceat(state, starts, axis=0) / (ends - starts)[:, None]
        return means

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
        """The stored bytes become numbers here, so that the process does not keep both."""
        stored = self.stored
        matrix = stored[name].astype(np.float32)
        product: Matrix = state @ matrix.T * stored[name + ".factor"] + stored[name + ".bias"]
        return product

    def _rows(self, name: str, numbers: NDArray[np.int64]) -> Matrix:
        stored = self.stored
        rows: Matrix = stored[name][numbers] * stored[name + ".factor"][numbers][:, None]
        return rows

    def _normal(self, state: Matrix, name: str) -> Matrix:
        state = state - state.mean(axis=1, keepdims=True)
        spread = np.sqrt((state * state).mean(axis=1, keepdims=True) + _EPSILON)
        normal: Matrix = (
            state / spread * self.stored[name + ".scale"] + self.stored[name + ".shift"]
        )
        return normal


@cache
def _base() -> dict[str, Any]:
    return _weights(BASE)


def _weights(path: Path) -> dict[str, Any]:
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}
