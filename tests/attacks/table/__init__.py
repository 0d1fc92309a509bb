"""All attempts that run as code of an agent."""

from tests.attacks.attack import Attack
from tests.attacks.table import files, kernel, network, processes, surroundings

ATTACKS: tuple[Attack, ...] = (
    *files.ATTACKS,
    *surroundings.ATTACKS,
    *network.ATTACKS,
    *processes.ATTACKS,
    *kernel.ATTACKS,
)
