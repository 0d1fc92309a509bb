"""Watching Vel from outside: traces of runs, and numbers of each process.

The engine speaks to `watch`, `model_watch` and `tool_watch` alone. With neither traces nor metrics
asked for nothing here is imported beyond that, and no row is read or written.
"""
