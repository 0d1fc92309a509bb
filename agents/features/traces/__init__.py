"""The trace of a run: its model calls, tool calls, waits and subagents on a time line.

A trace is derived from rows that the engine stores anyway. The feature has no tables.
"""
