"""Agents, runs, the engine that drives them, and every door they are reached through.

This is the package `agents` of Vel: `velproject.own_agents` looks for this sentence, because other
distributions have a package of the same name.
"""
