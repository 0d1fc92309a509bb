"""Create `text_scanner/likeness.tsv`: `python -m tests.text_scanner.train`.

This needs scikit-learn, which is not a dependency of the project. `--notes FILE` adds ordinary
paragraphs (JSON Lines with `text`) as harmless examples. `--without AUTHOR` leaves out the texts of
`training/AUTHOR.jsonl`, for a measurement. The weights in the repository were trained with 20,000
paragraphs of public projects' documents, which are not in the repository.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from tests.text_scanner.training_texts import training_texts
from text_scanner.likeness import FLOOR, SCALE, TOGETHER, WEIGHTS, sentences_of
from text_scanner.views import plain_view

NOTE_WEIGHT = 0.2
"""The weight of a passage of an ordinary paragraph, compared to a labelled text."""
PART_WEIGHT = 0.4
"""The weight of a passage of a longer harmless text."""
STRENGTH = 8.0
"""The inverse of the penalty on weights."""
KEPT = 20_000
"""How many features are kept. More find a little more, and the first scan takes longer."""

Passage = list[str]
"""The features of its sentences, in order."""
Weights = dict[str, tuple[float, float, int]]
"""The weight, the square of the rarity, and the number of labelled passages with the feature."""


@dataclass(frozen=True, slots=True)
class Row:
    passage: Passage
    is_attack: bool
    weight: float


def passages_of(text: str) -> list[Passage]:
    """The passages of `text` that the scanner judges."""
    parts = [sorted(sentence.features) for sentence in sentences_of(plain_view(text).text)]
    if not parts:
        return []
    last = max(1, len(parts) - TOGETHER + 1)
    return [list(chain.from_iterable(parts[at : at + TOGETHER])) for at in range(last)]


def train(rows: list[Row]) -> tuple[Weights, float]:
    """The weights and the bias for `text_scanner.likeness`."""
    frequency = Counter(feature for row in rows for feature in set(row.passage))
    labelled = Counter(
        feature for row in rows if row.weight > NOTE_WEIGHT for feature in set(row.passage)
    )
    places = {
        feature: at for at, feature in enumerate(sorted(f for f in labelled if labelled[f] > 1))
    }
    rarity = {f: math.log((1 + len(rows)) / (1 + frequency[f])) + 1 for f in places}
    starts, columns, values = [0], [], []
    for row in rows:
        here = [feature for feature in row.passage if feature in places]
        norm = math.sqrt(max(sum(rarity[f] ** 2 for f in here), FLOOR))
        counts = Counter(here)
        columns += [places[f] for f in counts]
        values += [counts[f] * rarity[f] / norm for f in counts]
        starts.append(len(columns))
    matrix = csr_matrix((values, columns, starts), shape=(len(rows), len(places)))
    model = LogisticRegression(C=STRENGTH, max_iter=3000)
    model.fit(matrix, [row.is_attack for row in rows], sample_weight=[row.weight for row in rows])
    weights = {
        f: (model.coef_[0][at] * rarity[f], rarity[f] ** 2, labelled[f]) for f, at in places.items()
    }
    return weights, float(model.intercept_[0])


def logit(passage: Passage, weights: Weights, bias: float) -> float:
    known = [weights[feature] for feature in passage if feature in weights]
    norm = math.sqrt(max(sum(square for _, square, _ in known), FLOOR))
    return bias + sum(weight for weight, _, _ in known) / norm


def rows_of(attacks: Iterable[str], benign: Iterable[str], notes: Iterable[str]) -> list[Row]:
    """All passages of harmless texts. Of a long attack only the passage with the highest score,
    from a model of the other texts."""
    rows: list[Row] = []
    long_attacks: list[list[Passage]] = []
    for text in attacks:
        seen = passages_of(text)
        if len(seen) == 1:
            rows.append(Row(seen[0], True, 1.0))
        elif seen:
            long_attacks.append(seen)
    for text in benign:
        seen = passages_of(text)
        rows += [Row(passage, False, 1.0 if len(seen) == 1 else PART_WEIGHT) for passage in seen]
    for text in notes:
        rows += [Row(passage, False, NOTE_WEIGHT) for passage in passages_of(text)[-6:]]
    weights, bias = train(rows)
    for seen in long_attacks:
        worst = max(seen, key=lambda passage: logit(passage, weights, bias))
        rows.append(Row(worst, True, 1.0))
    return rows


def write(weights: Weights, bias: float, path: Path) -> None:
    def use(feature: str) -> float:
        weight, _, count = weights[feature]
        return abs(weight) * math.sqrt(count)

    largest = sorted(weights, key=lambda feature: (-use(feature), feature))[:KEPT]
    lines = [str(round(bias * SCALE))]
    for feature in sorted(largest):
        weight, square, _ = weights[feature]
        lines.append(f"{feature}\t{round(weight * SCALE)}\t{round(square * SCALE)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--notes", type=Path)
    options.add_argument("--without", action="append", default=[])
    options.add_argument("--to", type=Path, default=WEIGHTS)
    given = options.parse_args()
    attacks, benign = training_texts(given.without)
    notes: list[str] = []
    if given.notes:
        lines = given.notes.read_text(encoding="utf-8").splitlines()
        notes = [json.loads(line)["text"] for line in lines]
    weights, bias = train(rows_of(sorted(attacks), sorted(benign), notes))
    write(weights, bias, given.to)
    print(f"{len(attacks)} attacks, {len(benign)} benign, {len(weights):,} features")


if __name__ == "__main__":
    main()
