"""Traces of runs and metrics of each process.

If neither traces nor metrics are enabled, OpenTelemetry is not imported, and no rows are read or
written for them.
"""
