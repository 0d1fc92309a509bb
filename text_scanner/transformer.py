"""Estimate with a small language model how likely a text steers an agent against its user.

`meaning.npz` contains the layers that `tests/text_scanner/fine_tune.py` trained for this, and the
weights of the result.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from language_model.encoder import MOST_PIECES, Encoder
from language_model.wordpieces import pieces_of

WEIGHTS = Path(__file__).with_name("meaning.npz")


def logits(texts: list[str]) -> list[float]:
    """Return for each text, as a logit, how likely it steers an agent against its user.

    A logit above 0 means more likely than not. The texts must be folded. The model reads only the
    first MOST_PIECES word pieces of each.
    """
    if not texts:
        return []
    model = _model()
    means = model.means([pieces_of(text, MOST_PIECES) for text in texts])
    found = means @ model.stored["head.weight"] + model.stored["head.bias"]
    return [float(value) for value in found]


@cache
def _model() -> Encoder:
    return Encoder(WEIGHTS)
