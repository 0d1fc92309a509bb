"""The operator console: cost, runs, failures, waits and workers of the whole installation.

It is derived from rows that Vel stores anyway. The feature has no tables.
"""
