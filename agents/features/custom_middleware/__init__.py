"""Middleware of operators and of Python programs: their code around model calls and tool calls.

It plugs in the middleware `custom`, which calls theirs on an event loop of its own.
"""
