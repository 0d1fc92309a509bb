"""The engine: it claims runs, drives them turn after turn, and survives the death of its process.

Read `drive.py` first; docs/contributing/architecture.md lists the invariants that comments here
refer to.
"""
