"""Each worker has a courier."""

from agents.features.notifications.courier import Courier

PARTS = [Courier]
