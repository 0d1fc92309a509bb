"""The modules that send notifications: each worker may have to."""

from agents.kernel.features import Preload

PRELOAD = (Preload(("agents.features.notifications.delivery",)),)
