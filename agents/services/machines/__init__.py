"""Machines and processes that drive runs, and the placement of threads."""
