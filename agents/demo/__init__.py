"""The demo: a small real task with its data, for a language model or for the offline script.

A leaf: it imports nothing of ours. `agents.services.demo` starts it,
`agents.providers.scripts.demo` plays it offline.
"""
