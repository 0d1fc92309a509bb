"""Create `text_scanner/meaning.npz`: `python -m tests.text_scanner.fine_tune MODEL`.

MODEL is a directory with `model.safetensors` of all-MiniLM-L6-v2. `--notes FILE` adds ordinary
paragraphs (JSON Lines with `text`) as harmless examples, if the linear model is not sure of them.
`--without AUTHOR` leaves out the texts of `training/AUTHOR.jsonl`, for a measurement.

The weights in the repository are the mean of two models. Both started as one, trained on all texts
except the last hundred of `training/pairs.jsonl`; then one saw all texts twice more, and the
other one saw half of them once more, with 3,000 paragraphs.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from language_model.encoder import MOST_PIECES
from language_model.wordpieces import pieces_of
from tests.language_model.training import WIDTH, Encoder, write_own
from tests.text_scanner.training_texts import training_texts
from text_scanner.likeness import Likeness, passages_of
from text_scanner.meaning import HARMLESS
from text_scanner.transformer import WEIGHTS
from text_scanner.views import plain_view

EPOCHS = 3
BATCH = 32
RATE = 8e-5
HEAD_RATE = 20 * RATE
WARM_UP = 0.08
SMOOTH = 0.04
"""A label is SMOOTH or 1 - SMOOTH, because authors do not agree on all of them."""
PART_WEIGHT = 0.4
"""The weight of a passage of a longer harmless text."""
NOTES = 3000
NOTE_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    pieces: list[int]
    is_attack: bool
    weight: float


class Model(nn.Module):
    """MiniLM with one output, for the mean of the states of all word pieces."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.encoder = Encoder(directory)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(WIDTH, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, texts: list[list[int]]) -> Tensor:
        logit: Tensor = self.head(self.drop(self.encoder(texts)))[:, 0]
        return logit


def rows_of(attacks: set[str], benign: set[str], notes: list[str]) -> list[Row]:
    """Of a long attack the passage that the linear model finds most suspicious, else all."""
    rows = []
    for text in sorted(attacks):
        folded, passages = _passages(text)
        if passages:
            worst = max(passages, key=lambda one: one.score)
            rows.append(_row(folded[worst.start : worst.end], True, 1.0))
    for text in sorted(benign):
        folded, passages = _passages(text)
        weight = 1.0 if len(passages) == 1 else PART_WEIGHT
        rows += [_row(folded[one.start : one.end], False, weight) for one in passages]
    unsure = []
    for text in notes:
        folded, passages = _passages(text)
        unsure += [folded[one.start : one.end] for one in passages if one.score > HARMLESS]
    chosen = random.sample(unsure, min(NOTES, len(unsure)))
    return rows + [_row(text, False, NOTE_WEIGHT) for text in chosen]


def _passages(text: str) -> tuple[str, list[Likeness]]:
    folded = plain_view(text).text
    return folded, passages_of(folded)


def _row(text: str, is_attack: bool, weight: float) -> Row:
    return Row(pieces_of(text, MOST_PIECES), is_attack, weight)


def batches(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield rows of a similar length together, in a random order."""
    order = random.sample(rows, len(rows))
    found = []
    for start in range(0, len(order), 16 * BATCH):
        near = sorted(order[start : start + 16 * BATCH], key=lambda row: len(row.pieces))
        found += [near[at : at + BATCH] for at in range(0, len(near), BATCH)]
    random.shuffle(found)
    yield from found


def train(model: Model, rows: list[Row]) -> None:
    steps = EPOCHS * (len(rows) // BATCH + 1)
    changing = model.encoder.trained()
    optimizer = torch.optim.AdamW(
        [{"params": changing, "lr": RATE}, {"params": model.head.parameters(), "lr": HEAD_RATE}]
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in batches(rows):
            labels = torch.tensor([1 - SMOOTH if row.is_attack else SMOOTH for row in batch])
            weights = torch.tensor([row.weight for row in batch])
            with torch.autocast("cpu", torch.bfloat16):
                found = model([row.pieces for row in batch])
            loss = functional.binary_cross_entropy_with_logits(found.float(), labels, weights)
            loss.backward()
            nn.utils.clip_grad_norm_(changing, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch}: loss {total / len(rows):.3f}", flush=True)


def write(model: Model, path: Path) -> None:
    weight, bias = model.head.weight.detach().numpy()[0], model.head.bias.detach().numpy()
    write_own(model.encoder, path, **{"head.weight": weight, "head.bias": bias})


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("model", type=Path)
    options.add_argument("--notes", type=Path)
    options.add_argument("--without", action="append", default=[])
    options.add_argument("--to", type=Path, default=WEIGHTS)
    given = options.parse_args()
    random.seed(7)
    torch.manual_seed(7)
    notes: list[str] = []
    if given.notes:
        lines = given.notes.read_text(encoding="utf-8").splitlines()
        notes = [json.loads(line)["text"] for line in lines]
    model = Model(given.model)
    train(model, rows_of(*training_texts(given.without), notes))
    write(model, given.to)


if __name__ == "__main__":
    main()
