"""Subagents: agents give tasks to other agents, each in a separate run.

It plugs in tools that delegate, wait and cancel, and a segment of the prompt of agents and of
subagents. The engine starts the runs, and wakes the parent when they have ended.
"""
