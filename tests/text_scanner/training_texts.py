"""The labelled texts that the models of the scanner are trained on."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from agents.agent_templates.catalogue import agent_templates, builder_prompt
from tests.text_scanner.labelled import texts

_TRAINING = Path(__file__).with_name("training")


def training_texts(without: Collection[str] = ()) -> tuple[set[str], set[str]]:
    """The attacks and the harmless texts for training, except those of some authors."""
    attacks, benign = set(texts("attacks")), set(texts("benign"))
    for path in sorted(_TRAINING.glob("*.jsonl")):
        if path.stem in without:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            (attacks if row["label"] == "attack" else benign).add(row["text"])
    for template in agent_templates().values():
        benign |= {template.description, template.data["system_prompt"]}
    benign.add(builder_prompt())
    return attacks, benign
