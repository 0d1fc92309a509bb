"""Several machines on one database: docs/operations/scaling.md."""

import re
import socket
from typing import Annotated

from agents.kernel.settings import About, FeatureSettings, Seconds

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_EXPECTED = "up to 63 letters, digits, dots and hyphens, or `hostname` for this machine's own name"


def machine_name(text: str) -> str:
    """Return the name of this machine. `hostname` means its host name. Raises `ValueError`."""
    name = socket.gethostname() if text == "hostname" else text
    if not _NAME.fullmatch(name):
        raise ValueError(_EXPECTED)
    return name


class MachineSettings(FeatureSettings):
    """Several machines

    See [scaling](../operations/scaling.md).
    """

    HOST: Annotated[str, About(parse=machine_name, expected=_EXPECTED)] = ""
    """The name of this machine among several on one database; `hostname` for its own name. Empty:
    there is one machine."""
    SHARED_WORKSPACES: bool = False
    """All machines mount the same data directory, so that any of them can continue any thread."""
    HOST_HEARTBEAT_SECONDS: Seconds = 5.0
    """How often each machine reports that it is alive."""
    HOST_DEAD_AFTER: Seconds = 0.0
    """Silence after which the other machines declare one dead. 0: only the operator does."""

    @property
    def pins_threads(self) -> bool:
        """Whether the files of a thread are on one of several machines."""
        return bool(self.HOST) and not self.SHARED_WORKSPACES
