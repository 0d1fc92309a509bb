"""Create `text_scanner/meaning.npz`: `python -m tests.text_scanner.fine_tune MODEL`.

MODEL is a directory with `model.safetensors` of all-MiniLM-L6-v2. This needs PyTorch and
safetensors, which are not dependencies of the project. The embeddings and the first FROZEN layers
keep their weights. `--notes FILE` adds ordinary paragraphs (JSON Lines with `text`) as harmless
examples, if the linear model is not sure of them. `--without AUTHOR` leaves out the texts of
`training/AUTHOR.jsonl`, for a measurement.

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

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from tests.text_scanner.training_texts import training_texts
from text_scanner.likeness import Likeness, passages_of
from text_scanner.meaning import HARMLESS
from text_scanner.transformer import HEADS, LAYERS, MOST_PIECES, WEIGHTS
from text_scanner.views import plain_view
from text_scanner.wordpieces import pieces_of

FROZEN = 2
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
WIDTH = 384


@dataclass(frozen=True, slots=True)
class Row:
    pieces: list[int]
    is_attack: bool
    weight: float


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.first = nn.LayerNorm(WIDTH, eps=1e-12)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.second = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(0.1)

    def forward(self, state: Tensor, mask: Tensor) -> Tensor:
        texts, size, _ = state.shape
        mixed = self.attention(state).view(texts, size, 3, HEADS, WIDTH // HEADS)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=self.drop.p if self.training else 0.0
        )
        joined = seen.transpose(1, 2).reshape(texts, size, WIDTH)
        state = self.first(state + self.drop(self.output(joined)))
        inner = functional.gelu(self.wide(state))
        changed: Tensor = self.second(state + self.drop(self.narrow(inner)))
        return changed


class Model(nn.Module):
    """MiniLM with one output, for the mean of the states of all word pieces."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        stored = load_file(directory / "model.safetensors")
        self.words = stored["embeddings.word_embeddings.weight"]
        kinds = stored["embeddings.token_type_embeddings.weight"]
        places = stored["embeddings.position_embeddings.weight"]
        self.places = places[:MOST_PIECES] + kinds[0]
        self.normal = nn.LayerNorm(WIDTH, eps=1e-12)
        _fill(self.normal, stored, "embeddings.LayerNorm")
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        for number, layer in enumerate(self.layers):
            _fill_layer(layer, stored, f"encoder.layer.{number}.")
        for module in (self.normal, *self.layers[:FROZEN]):
            module.requires_grad_(False)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(WIDTH, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, texts: list[list[int]]) -> Tensor:
        size = max(map(len, texts))
        numbers = torch.zeros(len(texts), size, dtype=torch.long)
        known = torch.zeros(len(texts), size, dtype=torch.bool)
        for row, text in enumerate(texts):
            numbers[row, : len(text)] = torch.tensor(text)
            known[row, : len(text)] = True
        state = self.normal(self.words[numbers] + self.places[:size])
        mask = torch.zeros(known.shape).masked_fill(~known, -1e9)[:, None, None, :]
        for layer in self.layers:
            state = layer(state, mask.to(state.dtype))
        share = known[..., None].float()
        mean = (state.float() * share).sum(1) / share.sum(1)
        logit: Tensor = self.head(self.drop(mean))[:, 0]
        return logit

    def freeze_dropout(self) -> None:
        for layer in self.layers[:FROZEN]:
            layer.eval()


def _fill(module: nn.Module, stored: dict[str, Tensor], *names: str) -> None:
    for kind in ("weight", "bias"):
        module.get_parameter(kind).data = torch.cat([stored[f"{name}.{kind}"] for name in names])


def _fill_layer(layer: nn.Module, stored: dict[str, Tensor], name: str) -> None:
    parts = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    _fill(layer.get_submodule("attention"), stored, *parts)
    _fill(layer.get_submodule("output"), stored, f"{name}attention.output.dense")
    _fill(layer.get_submodule("first"), stored, f"{name}attention.output.LayerNorm")
    _fill(layer.get_submodule("wide"), stored, f"{name}intermediate.dense")
    _fill(layer.get_submodule("narrow"), stored, f"{name}output.dense")
    _fill(layer.get_submodule("second"), stored, f"{name}output.LayerNorm")


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
    changing = [one for layer in model.layers[FROZEN:] for one in layer.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": changing, "lr": RATE}, {"params": model.head.parameters(), "lr": HEAD_RATE}]
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    model.train()
    model.freeze_dropout()
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
    """Write matrices as bytes with one factor for each row, and the rest as it is."""
    stored: dict[str, np.ndarray] = {}

    def put(name: str, matrix: Tensor) -> None:
        numbers = matrix.detach().float().numpy()
        factor = np.abs(numbers).max(axis=1) / 127
        stored[name] = np.round(numbers / factor[:, None]).astype(np.int8)
        stored[f"{name}.factor"] = factor.astype(np.float32)

    def put_normal(name: str, normal: nn.Module) -> None:
        stored[f"{name}.scale"] = normal.get_parameter("weight").detach().numpy()
        stored[f"{name}.shift"] = normal.get_parameter("bias").detach().numpy()

    put("words", model.words)
    put("places", model.places)
    put_normal("words", model.normal)
    for number, layer in enumerate(model.layers):
        for name in ("attention", "output", "wide", "narrow"):
            module = layer.get_submodule(name)
            put(f"{number}.{name}", module.get_parameter("weight"))
            stored[f"{number}.{name}.bias"] = module.get_parameter("bias").detach().numpy()
        for name in ("first", "second"):
            put_normal(f"{number}.{name}", layer.get_submodule(name))
    stored["head.weight"] = model.head.weight.detach().numpy()[0]
    stored["head.bias"] = model.head.bias.detach().numpy()
    np.savez(path, **stored)  # type: ignore[arg-type]


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
