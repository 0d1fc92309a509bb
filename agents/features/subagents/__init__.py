"""Subagents: agents give tasks to other agents, each in a run of its own.

It plugs in tools that delegate, wait and cancel, and a segment of the prompt of agents and of
subagents. The engine starts the runs, and wakes the parent when they have ended.
"""
