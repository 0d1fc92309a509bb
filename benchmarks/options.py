"""The options of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The size and the time limit of the benchmarks.

    `turns` are the tool turns of a run. No round starts that would probably end after `seconds`.
    `full` runs `load` and `growth` at their full size.
    """

    turns: tuple[int, ...] = (50, 200)
    rounds: int = 5
    seconds: float = 300.0
    peers: bool = True
    concurrent_peers: bool = False
    runs: int = 100
    model_ms: int = 50
    workers: int = 2
    full: bool = False
