"""The definition of one attempt. The tables are in `table/`, one module for a class or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Proof = Literal["secret", "printed", "touched", "heard", "victim", "left"]
Without = Literal["bare", "bwrap"]


@dataclass(frozen=True, slots=True)
class Attack:
    """Python source that runs without the guard, where it must succeed, and then with it.

    `proof` is the evidence of success:
    - secret: the output contains the planted secret (which the source never contains);
    - printed: the output contains SUCCESS, after the source itself has checked the effect;
    - touched: the file `mark`, outside, exists;
    - heard: one of the host's sockets or terminals received `slug`;
    - victim: the process `victim` has changed (alive, stopped, priorities, limits);
    - left: a process with `slug` on its command line outlives the command.

    Without the guard, the source runs in a plain process of the same account, or, if the kernel
    forbids the action to plain processes, in `bwrap` without a filter and with all its
    capabilities. If the host lacks something, the output is ABSENT and a reason. The source can use
    the names of `driver.PRELUDE` and `world.World.targets`.
    """

    name: str
    kind: str
    source: str
    proof: Proof = "printed"
    without: Without = "bare"
    network: bool = False
    """Whether the sandbox is one with a network."""
