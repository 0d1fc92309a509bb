"""Agents, runs, the engine that executes them, and the doors to them.

This is the package `agents` of Vel: `velproject.own_agents` searches for this sentence, because
other distributions have a package of the same name.
"""
