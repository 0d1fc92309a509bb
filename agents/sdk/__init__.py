"""Vel from Python: agents in a script, a notebook, or a Django project.

The public names are those of the package `agents`; docs/guides/python.md describes them. Runs are
the same rows, driven by the same engine, in the calling process.
"""
