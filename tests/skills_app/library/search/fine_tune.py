"""Create `skills_app/library/search/meaning.npz`.

Run `python -m tests.skills_app.library.search.fine_tune MODEL DIRECTORY …`. MODEL is a directory
with `model.safetensors` of all-MiniLM-L6-v2. The directories contain the published skills of
`training_requests.txt`, which are not in the repository, and any others. Needs PyTorch, safetensors
and PyYAML. It takes two minutes of processor time.

The model learns to find the right skill of a request among those of the other requests and
NEGATIVES more. The weights in the repository were trained with 4,600 skills of public repositories
as DIRECTORY (github/awesome-copilot, wshobson/agents, alirezarezvani/claude-skills,
zuoguyoupan2023/awesome-ai-skills, coreyhaines31/marketingskills and smaller ones). No skill of
`held_out_requests.txt` was trained with.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

import torch
import yaml
from torch import Tensor, nn
from torch.nn import functional

from language_model.wordpieces import pieces_of
from skills_app.library.package import SKILL_FILE
from skills_app.library.search.document import SkillDocument
from skills_app.library.search.meaning import WEIGHTS
from skills_app.library.search.tokens import fold
from tests.language_model.training import Encoder, write_own

HERE = Path(__file__).parent
PIECES = 110
EPOCHS = 4
BATCH = 32
NEGATIVES = 24
RATE = 3e-5
WARM_UP = 0.1
TEMPERATURE = 0.05
SMOOTH = 0.05
LONGEST = 500
"""Characters of the description of a skill that is wrong for all requests of a batch."""
_HEAD = re.compile(r"\A\s*---\s*\n(.*?)\n---\s*\n", re.DOTALL)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return (name of a skill, request)."""
    pairs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, *requests = line.split("|")
            pairs += [(name, request) for request in requests]
    return pairs


def read_skills(directories: list[Path]) -> dict[str, str]:
    """Return the text that the model reads, by the name of the skill."""
    found: dict[str, str] = {}
    for path in sorted(path for each in directories for path in each.rglob(SKILL_FILE)):
        head = _HEAD.match(path.read_text(encoding="utf-8", errors="replace"))
        try:
            said = yaml.safe_load(head[1]) if head else {}
        except yaml.YAMLError:
            continue
        name, description = said.get("name"), said.get("description")
        if isinstance(name, str) and isinstance(description, str):
            document = SkillDocument(name, " ".join(description.split()))
            found.setdefault(name, document.said)
    return found


def vectors(encoder: Encoder, texts: list[str]) -> Tensor:
    return functional.normalize(encoder([pieces_of(fold(text), PIECES) for text in texts]), dim=1)


def train(encoder: Encoder, pairs: list[tuple[str, str]], skills: dict[str, str]) -> None:
    others = [name for name, text in skills.items() if text.isascii() and len(text) < LONGEST]
    steps = EPOCHS * (len(pairs) // BATCH + 1)
    changing = encoder.trained()
    optimizer = torch.optim.AdamW(changing, lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / (WARM_UP * steps)) * max(0.0, 1 - step / steps),
    )
    encoder.train()
    for epoch in range(EPOCHS):
        total = 0.0
        order = random.sample(pairs, len(pairs))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            names = list(dict.fromkeys(name for name, _ in batch))
            wrong = [name for name in random.sample(others, NEGATIVES) if name not in names]
            with torch.autocast("cpu", torch.bfloat16):
                asked = vectors(encoder, [request for _, request in batch])
                offered = vectors(encoder, [skills[name] for name in names + wrong])
            right = torch.tensor([names.index(name) for name, _ in batch])
            loss = functional.cross_entropy(
                asked @ offered.T / TEMPERATURE, right, label_smoothing=SMOOTH
            )
            loss.backward()
            nn.utils.clip_grad_norm_(changing, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch}: loss {total / len(pairs):.3f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY")
    options.add_argument("--to", type=Path, default=WEIGHTS)
    given = options.parse_args()
    random.seed(7)
    torch.manual_seed(7)
    skills = read_skills(given.directories)
    kept_aside = {name for name, _ in read_pairs(HERE / "held_out_requests.txt")}
    skills = {name: text for name, text in skills.items() if name not in kept_aside}
    pairs = [pair for pair in read_pairs(HERE / "training_requests.txt") if pair[0] in skills]
    encoder = Encoder(given.model)
    train(encoder, pairs, skills)
    write_own(encoder, given.to)


if __name__ == "__main__":
    main()
