"""Traces of runs and metrics of each process.

The engine uses only `watch`, `model_watch` and `tool_watch`. If neither traces nor metrics are
enabled, these import no other module, and no row is read or written.
"""
