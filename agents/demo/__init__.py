"""The demo: a small real task with its data, for a language model or for the offline script.

It imports no other module of Vel. `agents.services.demo` starts it, `agents.providers.scripts.demo`
plays it offline.
"""
