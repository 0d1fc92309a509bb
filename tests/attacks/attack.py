"""What one attempt is. The tables of attempts are in `table/`, one module a class or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Proof = Literal["secret", "said", "touched", "heard", "victim", "left"]
Without = Literal["bare", "bwrap"]


@dataclass(frozen=True, slots=True)
class Attack:
    """Python source that is run without the guard, where it must succeed, and then with it.

    `proof` is what would prove success:
    - secret: the planted secret is in what it printed (the source never holds it);
    - said: it printed SUCCESS, having checked the effect itself;
    - touched: the file `mark`, outside, is there;
    - heard: one of the host's sockets or terminals heard `slug`;
    - victim: the process `victim` is not what it was (alive, stopped, priorities, limits);
    - left: a process with `slug` on its command line outlives the command.

    Without the guard means a plain process of the same account; or, where the kernel lets such
    a process do nothing anyway, `bwrap` without a filter and with all its capabilities. What a
    host lacks is printed as ABSENT and a reason. The names that the source finds are those of
    `driver.PRELUDE` and `world.World.targets`.
    """

    name: str
    kind: str
    source: str
    proof: Proof = "said"
    without: Without = "bare"
    network: bool = False
    """Whether the sandbox is one with a network."""
