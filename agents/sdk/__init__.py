"""Vel from Python: agents in a script, a notebook, or a Django project.

The public names are those of the package `vel`; docs/guides/python.md describes them. Runs are the
same rows as in the server, and the same engine executes them in the calling process.
"""
