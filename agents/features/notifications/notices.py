"""Receive every notice of Vel."""

from agents.features.notifications.queue import notify_of

LISTENERS = [notify_of]
