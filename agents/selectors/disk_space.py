"""Check whether a run waits for disk space.

It is computed from the disk each time, because nothing can be stored on a full disk.
"""

from __future__ import annotations

from agents.disk_space import is_used_up, why_waiting
from agents.models import Run
from agents.settings import MachineSettings
from agents.states import RunStatus

_WOULD_GO_ON = (RunStatus.QUEUED, RunStatus.RUNNING)


def waiting_for_space(run: Run) -> str:
    """Return a message if the run waits for disk space, otherwise "".

    With several hosts it is always "": this host does not know the disk of the thread's host.
    """
    if run.status not in _WOULD_GO_ON or MachineSettings.now().pins_threads or not is_used_up():
        return ""
    return why_waiting()
