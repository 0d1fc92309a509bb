"""The module that starts the runs of due schedules: each worker does."""

from agents.kernel.features import Preload

PRELOAD = (Preload(("agents.features.schedules.firing",)),)
