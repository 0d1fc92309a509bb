"""The engine, which executes runs and continues them after the death of a process.

It claims a run and executes it turn by turn; the code that does this for one run is called its
driver. Read `drive.py` first. docs/contributing/architecture.md lists the invariants that comments
here refer to.
"""
