"""What can be asked of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`turns` are tool turns of a run; `seconds` is when a benchmark begins no more rounds.

    `full`: `load` and `growth` at their whole size.
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
