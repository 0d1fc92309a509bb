"""The page Settings of an agent: its definition as a form, its file, its versions, and test runs.

The form derives from the fields of an agent's file, and a change is a change of this file. The
feature has no tables.
"""
