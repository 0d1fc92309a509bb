"""Vel from Python: agents in a script, a notebook, or somebody's Django project.

The public names are those of the package `agents`; docs/python.md shows them. Runs are the same
rows, driven by the same engine, in the calling process.
"""
