"""The engine: claims runs, drives them turn after turn, and loses nothing when it dies.

Read `drive.py` first; docs/architecture.md lists the invariants that comments here refer to.
"""
