"""Middleware of operators and of Python programs: their code around model calls and tool calls.

The middleware `custom` calls theirs on a separate event loop.
"""
