"""Other harnesses, each in its own virtual environment that is created on first use.

Their dependencies may conflict with Vel's. One of them even installs a package `agents`, like Vel.
"""
