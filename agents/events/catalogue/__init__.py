"""The event types of a run's log: one class each, and one module for each feature.

Each module has its classes in the list `EVENTS`, where `agents.events.registry` finds them.
"""
