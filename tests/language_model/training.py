"""MiniLM in PyTorch, for the programs that fine-tune it.

PyTorch and safetensors are not dependencies of the project. The embeddings and the first SHARED
layers keep their weights: `write_base` writes them to `language_model/base.npz`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from language_model.encoder import BASE, HEADS, LAYERS, MOST_PIECES, SHARED

WIDTH = 384


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


class Encoder(nn.Module):
    """The mean of the states of all word pieces. `directory` has `model.safetensors`."""

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
        for module in (self.normal, *self.layers[:SHARED]):
            module.requires_grad_(False)

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
        mean: Tensor = (state.float() * share).sum(1) / share.sum(1)
        return mean

    def trained(self) -> list[nn.Parameter]:
        return [one for layer in self.layers[SHARED:] for one in layer.parameters()]

    def train(self, mode: bool = True) -> Encoder:
        """The shared layers compute without dropout, as they do in use."""
        super().train(mode)
        for layer in self.layers[:SHARED]:
            layer.eval()
        return self


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


Stored = dict[str, np.ndarray]


def write_base(encoder: Encoder) -> None:
    stored: Stored = {}
    _put(stored, "words", encoder.words)
    _put(stored, "places", encoder.places)
    _put_normal(stored, "words", encoder.normal)
    _put_layers(stored, encoder, range(SHARED))
    np.savez(BASE, **stored)  # type: ignore[arg-type]


def write_own(encoder: Encoder, path: Path, **more: np.ndarray) -> None:
    """Write the layers from SHARED on, and the arrays `more`."""
    stored: Stored = dict(more)
    _put_layers(stored, encoder, range(SHARED, LAYERS))
    np.savez(path, **stored)  # type: ignore[arg-type]


def _put_layers(stored: Stored, encoder: Encoder, numbers: range) -> None:
    for number in numbers:
        layer = encoder.layers[number]
        for name in ("attention", "output", "wide", "narrow"):
            module = layer.get_submodule(name)
            _put(stored, f"{number}.{name}", module.get_parameter("weight"))
            stored[f"{number}.{name}.bias"] = module.get_parameter("bias").detach().numpy()
        for name in ("first", "second"):
            _put_normal(stored, f"{number}.{name}", layer.get_submodule(name))


def _put(stored: Stored, name: str, matrix: Tensor) -> None:
    """Store a matrix as bytes, with one factor for each row."""
    numbers = matrix.detach().float().numpy()
    factor = np.abs(numbers).max(axis=1) / 127
    stored[name] = np.round(numbers / factor[:, None]).astype(np.int8)
    stored[f"{name}.factor"] = factor.astype(np.float32)


def _put_normal(stored: Stored, name: str, normal: nn.Module) -> None:
    stored[f"{name}.scale"] = normal.get_parameter("weight").detach().numpy()
    stored[f"{name}.shift"] = normal.get_parameter("bias").detach().numpy()
